from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_notebook import tools
from pi_notebook.agent.tool import Tool
from pi_notebook.errors import ToolDefinitionError
from pi_notebook.tools import NAMES, builtin

APIS = ("openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai")


def test_all_tools_in_order() -> None:
    assert [tool.name for tool in builtin()] == list(NAMES)
    assert list(NAMES) == ["read", "bash", "edit", "write", "grep", "find", "ls", "python", "variables"]


def test_some_tools_in_the_order_asked_for() -> None:
    assert [tool.name for tool in builtin("grep", "read")] == ["grep", "read"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="There is no built-in tool 'cat'; there are: read, bash, edit,"):
        builtin("cat")


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolDefinitionError, match="must be an existing folder"):
        builtin(root=tmp_path / "missing")


def test_each_tool_is_there_by_name() -> None:
    for name in NAMES:
        tool = getattr(tools, name)
        assert isinstance(tool, Tool)
        assert tool.name == name
        assert getattr(tools, name) is tool
    with pytest.raises(AttributeError):
        tools.nothing  # type: ignore[attr-defined]


def test_who_asks_for_approval() -> None:
    assert [tool.name for tool in builtin() if tool.wants_approval({})] == ["bash", "edit", "write", "python"]


def test_the_root_is_fixed_when_the_tools_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "f").write_text("x")
    monkeypatch.chdir(tmp_path / "here")
    (read,) = builtin("read")
    monkeypatch.chdir(tmp_path)
    assert read.call(path="f").text == "x"


def test_the_import_is_cheap() -> None:
    heavy = "{'PIL', 'regex', 'subprocess', 'pandas', 'numpy', 'IPython', 'difflib', 'httpx', 'pydantic'}"
    code = f"import sys, pi_notebook.tools; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_descriptions_are_short_and_say_when_not_to_use_the_tool(name: str) -> None:
    (tool,) = builtin(name)
    assert len(tool.description) < 500
    assert re.search(r"\bNot for\b", tool.description)
    for parameter in properties(tool.schema):
        assert parameter["description"]


def properties(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for value in schema.get("properties", {}).values():
        found.append(value)
        found += properties(value.get("items", {}))
    return found


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", NAMES)
def test_every_api_can_be_told_of_every_tool(api: str, name: str) -> None:
    (tool,) = builtin(name)
    described = str(tool.describe(api))
    assert tool.description in tool.describe(api).get("description", described)
    for parameter in tool.schema["properties"]:
        assert parameter in described
