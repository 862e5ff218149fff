from __future__ import annotations

import re
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel

from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.errors import ModelError


class Place(BaseModel):
    name: str


@tool(approval=True, timeout=5, thread="worker")
def weather(city: Place, days: Annotated[int, "How many"] = 3, unit: Literal["C", "F"] | None = None) -> str:
    """Weather of a city."""
    return ""


def test_for_a_person_in_a_terminal() -> None:
    lines = repr(weather.describe()).splitlines()

    assert lines[:6] == [
        "weather",
        "Weather of a city.",
        "",
        "  city: Place (required)",
        "  days: integer (3) How many",
        '  unit: "C" | "F" | null (null)',
    ]
    assert "  approval: asks before each run" in lines
    assert "  runs on: a thread of its own, beside other calls" in lines
    assert "  timeout: 5 s" in lines
    assert re.fullmatch(r"  defined: test_describe\.py, line \d+", lines[-1])


def test_for_a_person_in_a_notebook() -> None:
    html = weather.describe()._repr_html_()

    assert "<td><code>days</code></td><td><code>integer</code></td><td><code>3</code></td><td>How many</td>" in html
    assert "&quot;$defs&quot;" in html
    assert "| days | integer | 3 | How many |" in weather.describe()._repr_markdown_()


HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) | `a` **b** <script>"


def test_nothing_hostile_survives_in_html_or_markdown() -> None:
    async def execute(*_: object) -> ToolResult:
        return ToolResult()

    schema = {
        "type": "object",
        "properties": {HOSTILE: {"enum": [HOSTILE], "description": HOSTILE, "default": HOSTILE}},
    }
    description = Tool("t", HOSTILE, schema, execute, approval=lambda arguments: True).describe()

    html = description._repr_html_()
    assert "<img" not in html
    assert "<script" not in html
    markdown = description._repr_markdown_()
    from markdown_it import MarkdownIt

    rendered = MarkdownIt("commonmark").enable("table").render(markdown)
    for bad in ("<img", "<script", "<a ", "<strong>b"):
        assert bad not in rendered


@pytest.mark.parametrize(
    "api",
    ["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai", "openai", "anthropic",
     "google", "ollama", "openrouter"],
)  # fmt: skip
def test_what_an_api_or_a_provider_is_sent(api: str) -> None:
    sent = weather.describe(api)

    assert isinstance(sent, dict)
    assert sent.get("name", sent.get("function", {}).get("name")) == "weather"
    assert "Weather of a city." in str(sent)


def test_a_tool_that_waits_for_a_later_cell_says_so() -> None:
    cell: dict[str, object] = {"tool": tool, "__name__": "late_cell"}
    exec("@tool\ndef f(a: 'Later'): ...", cell)
    description = cell["f"].describe()  # type: ignore[attr-defined]

    assert "  not yet usable: Tool 'f': the annotation of parameter 'a' names 'Later', which is not" in repr(
        description
    )
    assert "No parameters." in description._repr_html_()
    assert "not yet usable" in description._repr_markdown_()


def test_an_unknown_api_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="nobody"):
        weather.describe("nobody")
