"""practice: which tool a prompt means, what its arguments are, and what is said afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.apis.practice import answer, notice
from pi_notebook.ai.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import Context, StreamOptions, stream
from pi_notebook.ai.providers import PRACTICE

from .servers import Spec


def tool(name: str, description: str = "", /, *, optional: Sequence[str] = (), **properties: Any) -> Spec:
    made = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    required = [key for key in made if key not in optional]
    return Spec(name, {"type": "object", "properties": made, "required": required}, description)


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


MEAN = tool(
    "column_mean", "Mean of one column.", table=text("Name of a loaded table."), column=text("Column to average.")
)
DROP = tool("drop_rows", "Delete the rows that match a pandas query.", table="string", where="string")
KINDS = text(enum=["line", "bar", "scatter"])
PLOT = tool("plot", "Plot one column against another.", x="string", y="string", kind=KINDS, optional=["kind"])
HISTOGRAM = tool(
    "plot_histogram", "Histogram of a column.", table="string", column="string", bins="integer", optional=["bins"]
)
HEAD = tool("head", "First rows of a table.", table="string", n="integer", optional=["n"])
TABLES = [MEAN, DROP, PLOT, HISTOGRAM, HEAD]
ADD = tool("add", "Add two numbers.", a="number", b="number")
MULTIPLY = tool("multiply", "Multiply two numbers.", a="number", b="number")
UNIT = {"anyOf": [{"enum": ["celsius", "fahrenheit"], "type": "string"}, {"type": "null"}]}
WEATHER = tool("get_weather", "Current weather in a city, like Paris.", city="string", unit=UNIT, optional=["unit"])
READ = tool(
    "read",
    "Read a file.",
    path="string",
    offset="integer",
    limit={"type": "integer", "description": "Lines at most"},
    optional=["offset", "limit"],
)
FIND = tool("find", "Find files by glob.", pattern=text("Glob"), path="string", optional=["path"])
GREP = tool("grep", "Search file contents.", pattern=text("Regular expression"), path="string", optional=["path"])
LS = tool("ls", "List a folder.", path="string", optional=["path"])
BASH = tool("bash", "Run a shell command.", command="string")
PYTHON = tool("python", "Run code in the notebook's namespace.", code="string")
WRITE = tool("write", "Write a file.", path="string", content="string")
FILES = [READ, FIND, GREP, LS, BASH, PYTHON, WRITE]


class Talk:
    """A conversation in which each call gets the next result; an exception is an error result."""

    def __init__(self, *tools: Spec) -> None:
        self.tools = tools
        self.messages: list[Message] = []

    def say(self, prompt: str, *results: Any) -> list[AssistantMessage]:
        self.messages.append(UserMessage(prompt))
        given, replies = list(results), []
        while True:
            blocks = answer(Context(messages=self.messages, tools=self.tools))
            count = len(self.messages)
            blocks = [
                ToolCall(f"c{count}_{i}", b.name, b.arguments) if isinstance(b, ToolCall) else b
                for i, b in enumerate(blocks)
            ]
            replies.append(AssistantMessage(blocks))
            self.messages.append(replies[-1])
            if not replies[-1].tool_calls:
                return replies
            assert len(replies) < 20
            for call in replies[-1].tool_calls:
                result = given.pop(0) if given else "12.5"
                content = result if isinstance(result, list) else [TextContent(str(result))]
                is_error = isinstance(result, Exception)
                self.messages.append(ToolResultMessage(call.id, call.name, content, is_error=is_error))


def calls(prompt: str, *tools: Spec, results: Sequence[Any] = ()) -> list[tuple[str, dict[str, Any]]]:
    replies = Talk(*tools).say(prompt, *results)
    return [(call.name, call.arguments) for reply in replies for call in reply.tool_calls]


def last(prompt: str, *tools: Spec, results: Sequence[Any] = ()) -> str:
    return Talk(*tools).say(prompt, *results)[-1].text


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "What is the mean price in sales? Then drop the rows with a negative price.",
            [
                ("column_mean", {"table": "sales", "column": "price"}),
                ("drop_rows", {"table": "sales", "where": "price < 0"}),
            ],
        ),
        (
            "What's the average of the price column of the sales table?",
            [("column_mean", {"table": "sales", "column": "price"})],
        ),
        (
            "Delete rows of `sales` whose quantity is above 3.5 or price is at most 0",
            [("drop_rows", {"table": "sales", "where": "quantity > 3.5 or price <= 0"})],
        ),
        (
            'please remove rows in sales where region == "north" and plot a scatter of price vs quantity',
            [
                ("drop_rows", {"table": "sales", "where": 'region == "north"'}),
                ("plot", {"x": "quantity", "y": "price", "kind": "scatter"}),
            ],
        ),
        (
            "Draw a histogram of price in sales with 20 bins",
            [("plot_histogram", {"table": "sales", "column": "price", "bins": 20})],
        ),
        ("plot price by region as a bar chart", [("plot", {"x": "region", "y": "price", "kind": "bar"})]),
        ("show the first five rows of customers", [("head", {"table": "customers", "n": 5})]),
        ("column_mean: table=sales, column=price", [("column_mean", {"table": "sales", "column": "price"})]),
        (
            "mean of price and quantity in sales",
            [
                ("column_mean", {"table": "sales", "column": "price"}),
                ("column_mean", {"table": "sales", "column": "quantity"}),
            ],
        ),
    ],
)
def test_words_about_tables_become_calls(prompt: str, expected: list[Any]) -> None:
    assert calls(prompt, *TABLES) == expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("read data/sales.csv", [("read", {"path": "data/sales.csv"})]),
        ("Run `ls -la` with bash", [("bash", {"command": "ls -la"})]),
        ("run this in python:\n```python\nx = 1\nprint(x)\n```", [("python", {"code": "x = 1\nprint(x)"})]),
        ("search for TODO in main.py", [("grep", {"pattern": "TODO", "path": "main.py"})]),
        ("list the files in data/", [("ls", {"path": "data/"})]),
        (
            'write "hello" to notes.txt, then read it',
            [("write", {"path": "notes.txt", "content": "hello"}), ("read", {"path": "notes.txt"})],
        ),
    ],
)
def test_words_about_files_become_calls(prompt: str, expected: list[Any]) -> None:
    assert calls(prompt, *FILES, results=["saved notes.txt"]) == expected


def test_it_means_the_result_of_the_call_before() -> None:
    found = calls("Find the CSV files, then read the first 3 lines of it", *FILES, results=["data/a.csv\nb.csv"])
    assert found == [("find", {"pattern": "*.csv"}), ("read", {"path": "data/a.csv", "limit": 3})]
    found = calls("Multiply 3 by 4, then add 5 to the result", ADD, MULTIPLY, results=["12"])
    assert found == [("multiply", {"a": 3, "b": 4}), ("add", {"a": 5, "b": 12})]


@pytest.mark.parametrize(
    ("prompt", "spec", "arguments"),
    [
        ("add 1,200 and -2.5", ADD, {"a": 1200, "b": -2.5}),
        (
            "book on 2026-03-04 for 4 people",
            tool("book", day=text(format="date"), people="integer"),
            {"day": "2026-03-04", "people": 4},
        ),
        ("sum 1, 2 and 3", tool("sum", numbers={"type": "array", "items": {"type": "number"}}), {"numbers": [1, 2, 3]}),
        ('store {"a": [1]}', tool("store", value="object"), {"value": {"a": [1]}}),
        ("zoom level 2", tool("zoom", level={"enum": [1, 2, 4]}), {"level": 2}),
        ("export without header", tool("export", header="boolean"), {"header": False}),
        ("export with header", tool("export", header="boolean"), {"header": True}),
        (
            "convert 10 km to miles",
            tool("convert", n="number", a=text(enum=["km", "miles"]), b=text(enum=["km", "miles"])),
            {"n": 10, "a": "km", "b": "miles"},
        ),
        ("greet Ada Lovelace", tool("greet", name="string"), {"name": "Ada Lovelace"}),
        ("search the docs for how to plot", tool("search_docs", query="string"), {"query": "how to plot"}),
        (
            "email bob@example.com saying lunch at noon",
            tool("email", to="string", body="string"),
            {"to": "bob@example.com", "body": "lunch at noon"},
        ),
        ("fetch https://x.org/a?b=1.", tool("fetch", url="string"), {"url": "https://x.org/a?b=1"}),
        ("paint the wall red", tool("paint", colour={"$ref": "#/$defs/C"}), {"colour": "red"}),
        ("open ticket AB-12", tool("ticket", key=text(pattern="^[A-Z]+-[0-9]+$")), {"key": "AB-12"}),
    ],
)
def test_arguments_are_filled_by_type_and_enum(prompt: str, spec: Spec, arguments: dict[str, Any]) -> None:
    spec.schema["$defs"] = {"C": {"enum": ["red", "green"]}}
    assert calls(prompt, spec) == [(spec.name, arguments)]


def test_several_values_are_several_calls_in_one_turn() -> None:
    (first, _) = Talk(WEATHER).say("What's the weather in Paris, Oslo and New York in celsius?")
    assert [c.arguments["city"] for c in first.tool_calls] == ["Paris", "Oslo", "New York"]
    assert {c.arguments["unit"] for c in first.tool_calls} == {"celsius"}


def test_steps_are_one_turn_each_unless_asked_for_at_the_same_time() -> None:
    prompt = "mean of price in sales and histogram of price in sales"
    assert [len(reply.tool_calls) for reply in Talk(*TABLES).say(prompt)] == [1, 1, 0]
    assert [len(reply.tool_calls) for reply in Talk(*TABLES).say(f"{prompt}, at the same time")] == [2, 0]


def test_a_tool_that_changes_something_is_not_called_for_its_noun_alone() -> None:
    assert calls("How many rows has sales?", DROP) == []
    assert calls("How many rows has sales? Show the first 3.", *TABLES) == [("head", {"table": "sales", "n": 3})]


# -- what it says


def test_it_says_why_it_calls_and_what_it_took_from_before() -> None:
    first, second, report = Talk(*TABLES).say("mean price in sales, then drop rows with negative price", "2.5", "1 row")
    assert first.text == "“mean” points to `column_mean`."
    assert second.text == ('“drop” and “rows” point to `drop_rows`. `table` is not named, so I take "sales" as before.')
    assert report.text == (
        '`column_mean(table="sales", column="price")` gave **2.5**.\n\n'
        '`drop_rows(table="sales", where="price < 0")` gave **1 row**.'
    )


def test_a_block_is_reported_with_its_reason_and_ends_the_plan() -> None:
    talk = Talk(*TABLES)
    replies = talk.say("drop rows of sales where price < 0, then show the first 5 rows", Exception("Keep them."))
    assert len(replies) == 2
    assert replies[-1].text == (
        '`drop_rows(table="sales", where="price < 0")` did not work out: Keep them.\n\nSo I did not go on to `head`.'
    )


def test_a_missing_argument_is_asked_for_and_the_answer_is_used() -> None:
    talk = Talk(*TABLES)
    (question,) = talk.say("the mean of a column in sales")
    assert question.text == (
        "To call `column_mean` I still need `column` (Column to average). "
        'Please tell me, with texts in quotes: for example `column: "..."`.'
    )
    replies = talk.say("price")
    assert replies[0].tool_calls[0].arguments == {"table": "sales", "column": "price"}
    assert replies[-1].text == '`column_mean(table="sales", column="price")` gave **12.5**.'


def test_an_answer_that_names_another_tool_is_a_prompt_of_its_own() -> None:
    talk = Talk(*TABLES, ADD)
    talk.say("the mean of a column in sales")
    assert talk.say("add 1 and 2")[0].tool_calls[0].name == "add"


def test_without_a_fitting_tool_it_names_those_it_has() -> None:
    assert last("hello there", ADD, LS) == (
        "None of my tools fits that. I can call:\n\n"
        "- `add(a, b)`: Add two numbers.\n"
        "- `ls(path)`: List a folder.\n\n"
        "Use words of one of them, and name its values."
    )
    assert last("hello there").startswith("I have no tools here, and without one I can do nothing:")


def test_a_step_that_no_tool_serves_is_named() -> None:
    assert last("Average price in sales, then send it to Bob", *TABLES).endswith("I have no tool for “send it to Bob”.")


def test_long_results_and_tables_and_images_are_reported_as_what_they_are() -> None:
    many = "\n".join(f"file {n} ```" for n in range(30))
    report = last("list the folder", LS, results=[many])
    assert report.startswith("`ls()` gave this:\n\n````text\nfile 0 ```\n")
    assert report.endswith("file 11 ```\n````\n\n… and 18 more lines, in the row of the call.")
    assert last("list the folder", LS, results=["| a |\n| - |\n| 1 |"]).endswith("gave this:\n\n| a |\n| - |\n| 1 |")
    image = [TextContent("drawn"), ImageContent("AA==", "image/png")]
    assert last("list the folder", LS, results=[image]) == "`ls()` gave an image and **drawn**."
    assert last("list the folder", LS, results=[""]) == "`ls()` is done; it gave no text."


def test_a_preview_of_an_inserted_table_is_no_part_of_what_was_said() -> None:
    table = "|  | price |\n| --- | --- |\n| 0 | 1 |"
    preview = f"DataFrame: 1,000 rows x 2 columns\nColumns: price float64, region str\n\n{table}"
    prompt = f"What is the mean price in `sales`:\n{preview}\n\n? Then drop the rows with a negative price."
    assert [name for name, _ in calls(prompt, *TABLES)] == ["column_mean", "drop_rows"]
    assert calls(prompt, MEAN) == [("column_mean", {"table": "sales", "column": "price"})]


def test_steering_adds_to_the_plan() -> None:
    talk = Talk(*TABLES)
    talk.messages = [
        UserMessage("mean of price in sales"),
        AssistantMessage([ToolCall("c1", "column_mean", {"table": "sales", "column": "price"})]),
        ToolResultMessage("c1", "column_mean", [TextContent("2.5")]),
    ]
    replies = talk.say("and plot price by region")
    assert replies[0].tool_calls[0].name == "plot"
    assert "2.5" in replies[-1].text


# -- as a model


def ask(context: Context, options: StreamOptions | None = None) -> list[Any]:
    async def run() -> list[Any]:
        return [event async for event in stream(PRACTICE, context, options)]

    return asyncio.run(run())


def test_it_streams_word_by_word_with_ids_and_usage() -> None:
    events = ask(Context(messages=[UserMessage("add 2 and 3")], tools=[ADD]))
    kinds = [event.type for event in events]
    assert kinds[0] == "start" and kinds[-1] == "done"
    assert [e.delta for e in events if e.type == "text_delta"] == ["“add” ", "points ", "to ", "`add`."]
    message = events[-1].message
    assert message.stop_reason == "tool_use"
    assert message.tool_calls == (ToolCall("call_1", "add", {"a": 2, "b": 3}),)
    assert message.usage.output > 0 and message.usage.cost is None


def test_tool_choice_none_is_kept() -> None:
    last_event = ask(Context(messages=[UserMessage("add 2 and 3")], tools=[ADD]), StreamOptions(tool_choice="none"))[-1]
    assert last_event.message.tool_calls == ()


def test_it_can_be_stopped_between_words() -> None:
    controller = AbortController()

    async def run() -> Any:
        event = None
        context = Context(messages=[UserMessage("hello there")], tools=[ADD])
        async for event in stream(PRACTICE, context, StreamOptions(signal=controller.signal)):
            if event.type == "text_delta":
                controller.abort()
        return event

    event = asyncio.run(run())
    assert (event.reason, event.message.text) == ("aborted", "None ")


def test_the_notice_says_what_it_is_and_how_to_get_a_real_one() -> None:
    line = notice()
    assert "\n" not in line and line.startswith("practice is no language model")
    assert all(word in line for word in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama", "-m provider:model"))


PIECES = (
    """add then and , . mean `x` " ' 1.5 { } [ it in sales drop rows price < ``` column table : = the / *.csv Paris -"""
)
PROMPTS = st.text(max_size=200) | st.lists(st.sampled_from([*PIECES.split(), "\n"]), max_size=30).map(" ".join)


@given(PROMPTS)
def test_any_prompt_gets_the_same_answer_twice_and_only_real_calls(prompt: str) -> None:
    tools = [*TABLES, ADD, WEATHER, *FILES]
    context = Context(messages=[UserMessage(prompt)], tools=tools)
    blocks = answer(context)
    assert blocks == answer(context) and blocks
    specs = {spec.name: spec.schema for spec in tools}
    for block in blocks:
        if isinstance(block, ToolCall):
            schema = specs[block.name]
            assert set(schema["required"]) <= block.arguments.keys() <= schema["properties"].keys()
