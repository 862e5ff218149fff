from __future__ import annotations

import gc
from typing import Any

import pytest

from pi_notebook.agent import function_tool
from pi_notebook.agent.function_tool import FunctionTool, tool
from pi_notebook.agent.registry import ToolRegistry


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, notices: list[str]) -> ToolRegistry:
    """An empty set of decorated tools in the place of the real one."""
    registry = ToolRegistry(notices.append)
    monkeypatch.setattr(function_tool, "registry", registry)
    return registry


class Notebook:
    """Runs cells in one namespace, each compiled as a file of its own."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"tool": tool, "__name__": "__main__"}
        self.count = 0

    def run(self, source: str) -> None:
        self.count += 1
        exec(compile(source, f"cell{self.count}.py", "exec", dont_inherit=True), self.names)


def names(registry: ToolRegistry) -> list[str]:
    return [each.name for each in registry.tools()]


def test_decorated_tools_are_listed_in_order_of_definition(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef b(): ...\n@tool\ndef a(): ...")

    assert names(registry) == ["b", "a"]
    assert registry.get("a") is notebook.names["a"]
    assert "a" in registry
    assert "c" not in registry


def test_running_a_cell_again_replaces_quietly_and_keeps_the_place(registry: ToolRegistry, notices: list[str]) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef a(n: int): return 1")
    notebook.run("@tool\ndef b(): ...")
    notebook.run("@tool\ndef a(n: int): return 2")

    assert names(registry) == ["a", "b"]
    assert registry.get("a") is notebook.names["a"]
    assert notices == []


def test_a_changed_schema_is_said(registry: ToolRegistry, notices: list[str]) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef a(n: int, old: str, kept: int = 1): ...")
    notebook.run("@tool\ndef a(n: float, new: str, kept: int = 1): ...")

    assert notices == ["Tool 'a' has changed its parameters: + new, - old, changed: n."]


def test_a_changed_name_is_said_and_the_old_one_goes(registry: ToolRegistry, notices: list[str]) -> None:
    notebook = Notebook()
    notebook.run("@tool(name='first')\ndef a(): ...")
    notebook.run("@tool\ndef b(): ...")
    notebook.run("@tool(name='second')\ndef a(): ...")

    assert notices == ["Tool 'first' is now called 'second'."]
    assert names(registry) == ["second", "b"]


def test_many_tools_made_in_one_place_are_many(registry: ToolRegistry, notices: list[str]) -> None:
    notebook = Notebook()
    notebook.run("made = []\nfor name in 'xyz':\n    @tool(name=name)\n    def f(): ...\n    made.append(f)")
    notebook.run("def make(name):\n    @tool(name=name)\n    def g(): ...\n    return g\nk, l = make('k'), make('l')")

    assert names(registry) == ["x", "y", "z", "k", "l"]
    assert notices == []


def test_deleting_the_function_removes_the_tool(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run(
        "@tool\ndef a(n: int): ...\n@tool\nasync def b(ctx: 'ToolContext'): ...\na.call(n=1)\na.schema, b.schema"
    )
    notebook.run("del a, b")

    assert names(registry) == []


def test_a_deleted_tool_that_something_else_holds_is_removed_by_the_namespace(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef a(): ...\n@tool\ndef b(): ...")
    held = notebook.names["a"]
    notebook.names["_"] = notebook.names["Out"] = held

    assert [each.name for each in registry.tools(notebook.names)] == ["a", "b"]
    notebook.run("del a")
    assert [each.name for each in registry.tools(notebook.names)] == ["b"]
    assert held.call().is_error is False


def test_a_tool_that_never_was_a_variable_stays(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("many = [tool(lambda: 1, name='one')]")

    assert [each.name for each in registry.tools(notebook.names)] == ["one"]
    assert [each.name for each in registry.tools(notebook.names)] == ["one"]


def test_unregister(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef search(): ...\ntool.unregister('search')")

    assert names(registry) == []
    assert notebook.names["search"]() is None


def test_unregistering_what_is_not_there_names_what_is(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef search(): ...")

    with pytest.raises(KeyError, match="No tool 'serch'; did you mean 'search'"):
        tool.unregister("serch")
    with pytest.raises(KeyError, match="No tool 'x'; there are: search"):
        tool.unregister("x")


def test_methods_are_registered_only_with_their_object(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef a(): return 'function'")
    notebook.run(
        "class C:\n    @tool\n    def a(self): return 'method'\n    @tool\n    def b(self): return 'b'\nc = C()"
    )

    assert names(registry) == ["a"]
    notebook.run("b = tool(c.b)")
    assert names(registry) == ["a", "b"]
    assert notebook.names["a"]() == "function"


def test_a_definition_that_is_refused_leaves_the_old_one(registry: ToolRegistry) -> None:
    notebook = Notebook()
    notebook.run("@tool\ndef a(): ...")
    with pytest.raises(Exception, match="no JSON form"):
        notebook.run("import threading\n@tool\ndef a(lock: threading.Event): ...")

    assert registry.get("a") is notebook.names["a"]


def test_the_real_registry_does_not_keep_tools_alive() -> None:
    from pi_notebook.agent.registry import registry

    @tool
    def only_here() -> None: ...

    assert "only_here" in registry
    del only_here
    gc.collect()
    assert "only_here" not in registry


def test_where_a_tool_is_defined() -> None:
    def f() -> None: ...

    assert FunctionTool(f).where.startswith("test_registry.py, line ")
