from __future__ import annotations

import asyncio
import base64
import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pi_notebook.agent.tool import ConsoleText, Host, ToolContext, ToolResult
from pi_notebook.ai.messages import ImageContent
from pi_notebook.tools import Outcome, _python, builtin
from pi_notebook.tools._python import python_tool


class Cell:
    """The tool on a namespace of its own: `cell("1 + 1")`."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.tool = python_tool(self.namespace)

    def __call__(self, code: str) -> ToolResult:
        return self.tool.call(code=code)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    monkeypatch.setattr(_python, "_numbers", itertools.count(1))
    return Cell()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("'a\\n'", "'a\\n'"),
        ("(1, None, {'a': [True]})", "(1, None, {'a': [True]})"),
        ("{1}", "{1}"),
        ("None", "(no output)"),
        ("x = 1", "[New variable: x]"),
        ("", "(no output)"),
        ("# only a comment", "(no output)"),
        ("a, b = 1, 2\na + b", "3\n[New variables: a, b]"),
        ("print('p')\n5", "p\n5"),
        ("import sys\nprint('o'); print('e', file=sys.stderr)", "o\ne\n[New variable: sys]"),
        ("for i in range(2):\n    i", "[New variable: i]"),
    ],
)
def test_what_comes_back(cell: Cell, code: str, text: str) -> None:
    result = cell(code)
    assert result.text == text
    assert not result.is_error


def test_variables_stay(cell: Cell) -> None:
    cell("x = [1]")
    assert cell("x.append(2)\nx").text == "[1, 2]"
    assert cell.namespace["x"] == [1, 2]


def test_new_and_changed_variables_are_in_the_details(cell: Cell) -> None:
    cell("a = 1\nb = 2\nkeep = []")
    result = cell("b = 3\nc = 4\n_private = 5\nkeep.append(1)\ndel a")
    assert (result.details.new_variables, result.details.changed_variables) == (("c",), ("b",))
    assert result.details.error == ""
    assert result.details.seconds >= 0


def test_the_value_itself_is_kept(cell: Cell) -> None:
    assert cell("object_ = object()\nobject_").value is cell.namespace["object_"]


def test_an_error_comes_with_the_lines_that_led_to_it(cell: Cell) -> None:
    cell("def f(x):\n    return 1 / x")
    result = cell("print('before')\ny = 1\nf(0)")
    assert result.is_error
    assert result.text == (
        "before\n<python 2>, line 3, in <module>\n    f(0)\n<python 1>, line 2, in f\n    return 1 / x\n"
        "ZeroDivisionError: division by zero\n[New variable: y]"
    )
    assert isinstance(result.error, ZeroDivisionError)
    assert result.details.error == "ZeroDivisionError"


def test_a_syntax_error_shows_its_place(cell: Cell) -> None:
    result = cell("x = 1\ny = = 2")
    assert result.is_error
    assert result.text.startswith('  File "<python 1>", line 2\n    y = = 2\n')
    assert result.text.endswith("SyntaxError: invalid syntax")
    assert "x" not in cell.namespace


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "exit()", "raise BaseException('b')", "raise StopIteration"])
def test_nothing_that_code_raises_ends_the_process(cell: Cell, code: str) -> None:
    result = cell(code)
    assert result.is_error
    assert cell("1").text == "1"


def test_a_repr_that_fails_is_no_failure_of_the_call(cell: Cell) -> None:
    code = "class Bad:\n    def __repr__(self):\n        raise ValueError('no')\n"
    assert not cell(code + "[Bad()]").is_error
    assert not cell("Bad()").is_error


def test_code_can_await(cell: Cell) -> None:
    assert cell("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()").text.startswith(
        "7"
    )
    assert cell("x = await f()\nx").text.startswith("7")


def test_code_can_await_where_a_loop_runs_already() -> None:
    """As on a kernel's main thread, whose loop is busy with the cell."""

    class MainThread(Host):
        async def run_plain(self, function: Callable[[], Any], context: ToolContext) -> Any:
            return function()

    namespace: dict[str, Any] = {}
    tool = python_tool(namespace)

    async def run() -> ToolResult:
        from pi_notebook.agent.single_call import run_tool_call
        from pi_notebook.ai.messages import ToolCall

        code = "import asyncio\nawait asyncio.sleep(0, 5)"
        return await run_tool_call(ToolCall("1", "python", {"code": code}), [tool], host=MainThread(), ask=False)

    assert asyncio.run(run()).text.startswith("5")


def test_definitions_see_each_other_and_themselves(cell: Cell) -> None:
    cell("def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)")
    assert cell("[fact(n) for n in range(5)]").text == "[1, 1, 2, 6, 24]"
    assert cell("__name__").text == "'__main__'"


def test_the_source_of_definitions_can_be_seen(cell: Cell) -> None:
    cell("def f():\n    return 'here'")
    assert "return 'here'" in cell("import inspect\ninspect.getsource(f)").text


def test_long_output_keeps_its_end(cell: Cell) -> None:
    text = cell("for n in range(5000): print(n)").text
    assert text.startswith("[4,000 lines (18.4 KB) of output before this left out]\n4000\n")
    assert "\n4999\n" in text


def test_a_long_value_keeps_its_beginning(cell: Cell) -> None:
    text = cell("list(range(100000))").text
    assert text.startswith("[0, 1, 2, 3")
    assert text.endswith("of a list with 100,000 items left out]")
    assert len(text) < 21_000


def test_printing_is_shown_while_it_runs(cell: Cell) -> None:
    seen: list[ToolResult] = []
    asyncio.run(cell.tool.execute("1", {"code": "print('a')\nprint('b')"}, None, seen.append))
    assert "".join(update.details.text for update in seen if isinstance(update.details, ConsoleText)) == "a\nb\n"


def test_figures_are_images_and_come_once(cell: Cell) -> None:
    cell("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt")
    for code in ("plt.plot([1, 2])", "fig, ax = plt.subplots()\nfig", "plt.figure()\nNone"):
        images = [block for block in cell(code).content if isinstance(block, ImageContent)]
        assert len(images) == 1, code
        assert base64.b64decode(images[0].data).startswith(b"\x89PNG")
    assert len([block for block in cell("plt.figure(); plt.figure()").content if block.type == "image"]) == 2


def test_tables_are_tables(cell: Cell) -> None:
    text = cell("import pandas as pd\npd.DataFrame({'a': [1, 2]})").text
    assert "2 rows x 1 column" in text


def test_a_runner_of_the_notebook_is_used() -> None:
    namespace: dict[str, Any] = {}
    threads: list[str] = []

    async def runner(code: str, context: ToolContext) -> Outcome:
        threads.append(context.tool_name)
        namespace["made"] = code
        return Outcome(value=42)

    (tool,) = builtin("python", namespace=namespace, runner=runner)
    result = tool.call(code="anything %magic")
    assert result.text == "42\n[New variable: made]"
    assert threads == ["python"]


def test_a_runner_s_own_traceback_is_shown() -> None:
    async def runner(code: str, context: ToolContext) -> Outcome:
        return Outcome(error=ValueError("v"), traceback="In [3], line 1\nValueError: v")

    (tool,) = builtin("python", runner=runner)
    result = tool.call(code="x")
    assert (result.text, result.is_error) == ("In [3], line 1\nValueError: v", True)


def test_python_and_variables_share_a_namespace() -> None:
    python, variables = builtin("python", "variables")
    python.call(code="answer = 42")
    assert variables.call().text == f"answer: int, {sys.getsizeof(42)} bytes; 42"


def test_calls_of_one_batch_run_in_order() -> None:
    assert Cell().tool.execution_mode == "sequential"


def test_two_agents_do_not_mix_their_output() -> None:
    one, two = Cell(), Cell()
    texts: dict[int, str] = {}

    def run(number: int, cell: Cell) -> None:
        texts[number] = cell(f"import time\nfor _ in range(50):\n    print({number})\n    time.sleep(0.0005)").text

    threads = [threading.Thread(target=run, args=(number, cell)) for number, cell in ((1, one), (2, two))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (1, 2):
        assert set(texts[number].split("\n[")[0].split("\n")) == {str(number)}
