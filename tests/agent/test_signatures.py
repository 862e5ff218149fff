# ruff: noqa: UP045 - Optional is one of the annotations that must work
"""Signatures: what is refused, what waits for a later cell, and how arguments reach the function."""

from __future__ import annotations

import subprocess
import sys
import threading
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from pi_notebook.agent._signature import compile_signature
from pi_notebook.agent._simple_types import simple_type
from pi_notebook.agent.function_tool import FunctionTool, tool
from pi_notebook.agent.tool import ToolContext
from pi_notebook.errors import ToolDefinitionError


def run(tool: Any, **arguments: Any) -> Any:
    """The value of one call; raises what the tool's failure was."""
    result = tool.call(**arguments)
    assert not result.is_error, result.text
    return result.value


class Query(BaseModel):
    text: str
    limit: int = 10


class NotJson:
    pass


class TestRefusedParameters:
    @pytest.mark.parametrize(
        "annotation",
        [
            Callable[[int], int],
            NotJson,
            threading.Event,
            type[int],
            typing.Self,
            list[NotJson],
            Optional[NotJson],
            Literal[b"x"],
            3,
        ],
        ids=str,
    )
    def test_a_type_without_a_json_form_is_refused_by_name_in_one_line(self, annotation: Any) -> None:
        def f(good: int, bad: Any) -> None: ...

        f.__annotations__["bad"] = annotation
        with pytest.raises(ToolDefinitionError) as raised:
            tool(f)
        assert str(raised.value).startswith("Tool 'f': parameter 'bad' (")
        assert "use a dataclass, a pydantic model or plain types" in str(raised.value)
        assert "\n" not in str(raised.value)

    def test_text_that_is_no_type_is_refused(self) -> None:
        def f(bad: Any) -> None: ...

        f.__annotations__["bad"] = "list["
        with pytest.raises(ToolDefinitionError, match=r"annotation of parameter 'bad' .* cannot be read"):
            tool(f)

    def test_a_context_needs_no_json_form(self) -> None:
        @tool
        def f(n: int, ctx: ToolContext, other: ToolContext | None = None) -> int:
            assert ctx is other
            return n

        assert list(f.schema["properties"]) == ["n"]
        assert run(f, n=1) == 1


class TestLateNames:
    def test_a_model_of_a_later_cell_is_looked_up_at_first_use(self) -> None:
        cell: dict[str, Any] = {"tool": tool, "BaseModel": BaseModel, "__name__": "late_cell"}
        exec("@tool\ndef f(a: 'Later', b: 'list[Later]') -> 'Never': return a.n + len(b)", cell)
        with pytest.raises(ToolDefinitionError, match="parameter 'a' names 'Later', which is not defined"):
            cell["f"].schema
        assert cell["f"].call(a=1).text == (
            "ToolDefinitionError: Tool 'f': the annotation of parameter 'a' names 'Later', which is not defined (yet): "
            "define or import it."
        )

        exec("class Later(BaseModel):\n    n: int", cell)

        assert run(cell["f"], a={"n": 1}, b=[{"n": 2}]) == 2

    def test_a_model_that_refers_to_a_later_one_waits_too(self) -> None:
        cell: dict[str, Any] = {"tool": tool, "BaseModel": BaseModel, "__name__": "late_cell"}
        exec("class A(BaseModel):\n    b: 'B'\n@tool\ndef f(a: A): return a.b.n", cell)
        assert not cell["f"].is_resolved

        exec("class B(BaseModel):\n    n: int\nA.model_rebuild()", cell)

        assert run(cell["f"], a={"b": {"n": 3}}) == 3

    def test_classes_of_the_enclosing_function_are_found(self) -> None:
        class Local(BaseModel):
            n: int

        @tool
        def f(a: Local) -> int:
            return a.n

        assert run(f, a={"n": 3}) == 3

    def test_a_context_named_in_text_needs_no_import(self) -> None:
        cell: dict[str, Any] = {"tool": tool, "__name__": "late_cell"}
        exec("@tool\ndef f(ctx: 'ToolContext', n: int = 1): return type(ctx).__name__", cell)

        assert run(cell["f"]) == "ToolContext"


SIMPLE = st.recursive(
    st.sampled_from([str, int, float, bool, type(None), list, dict, Any]),
    lambda inner: st.one_of(
        inner.map(lambda each: list[each]),  # type: ignore[valid-type]
        inner.map(lambda each: dict[str, each]),  # type: ignore[valid-type]
        inner.filter(lambda each: each is not type(None)).map(lambda each: Optional[each]),
    ),
    max_leaves=4,
) | st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True).map(lambda values: Literal[tuple(values)])


class _NoTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class TestWithoutPydantic:
    @given(SIMPLE)
    def test_the_schema_of_everyday_types_is_pydantics_own(self, annotation: Any) -> None:
        found = simple_type(annotation)
        if found is None:  # left to pydantic
            return
        model = create_model("m", __config__=ConfigDict(protected_namespaces=()), x=(annotation, ...))

        assert found[0] == model.model_json_schema(schema_generator=_NoTitles)["properties"]["x"]

    @pytest.mark.parametrize(
        ("annotation", "value"),
        [
            (float, 3),
            (int, 3.0),
            (list[float], [1, 2.5]),
            (dict[str, int], {"a": 1.0}),
            (Optional[float], 1),
            (Optional[list[int]], None),
            (Literal[1, 2], 2.0),
            (list[float | None], [None, 1]),
            (Any, {"a": [1.0]}),
        ],
        ids=str,
    )
    def test_the_value_of_everyday_types_is_pydantics_own(self, annotation: Any, value: Any) -> None:
        def f(x: Any) -> None: ...

        f.__annotations__["x"] = annotation
        made = FunctionTool(f)
        assert not made.compiled.uses_pydantic

        ours = made.bind(made.check({"x": value})).kwargs["x"]
        theirs = TypeAdapter(annotation).validate_python(int(value) if annotation == Literal[1, 2] else value)

        assert (ours, repr(ours)) == (theirs, repr(theirs))

    def test_a_simple_tool_is_defined_and_run_without_importing_it(self) -> None:
        code = (
            "import sys\n"
            "from pi_notebook import tool\n"
            "@tool\n"
            "def add(a: int, b: float = 1, names: list[str] | None = None) -> float:\n"
            "    '''Add.\n\n    Args:\n        a: One.\n    '''\n"
            "    return a + b\n"
            "assert add.call(a='1').value == 2\n"
            "for name in ('pydantic', 'jsonschema', 'httpx', 'IPython', 'pandas', 'numpy', 'matplotlib', 'tqdm'):\n"
            "    assert name not in sys.modules, name\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class TestArguments:
    def test_all_that_is_wrong_is_told_at_once(self) -> None:
        @tool
        def f(n: int, query: Query) -> None: ...

        result = f.call(n="x", query={"limit": "many"}, other=1)

        assert result.is_error
        for path in ("n", "query.text", "query.limit", "other"):
            assert path in result.text

    def test_pydantic_has_the_last_word(self) -> None:
        def even(value: int) -> int:
            if value % 2:
                raise ValueError("it is odd")
            return value

        @tool
        def f(n: Annotated[int, AfterValidator(even)]) -> int:
            return n

        assert run(f, n=2) == 2
        assert "n: it is odd" in f.call(n=3).text

    def test_a_default_is_the_very_object(self) -> None:
        marker = object()

        @tool
        def f(n: int = 1, rest: Any = marker) -> Any:
            return rest is marker

        assert "default" not in f.schema["properties"]["rest"]
        assert run(f) is True

    def test_a_field_may_have_another_name(self) -> None:
        @tool
        def f(schema_: Annotated[int, Field(alias="schema")], _hidden: int = 1) -> int:
            return schema_ + _hidden

        assert list(f.schema["properties"]) == ["schema", "_hidden"]
        assert run(f, schema=1, _hidden=2) == 3

    @pytest.mark.parametrize("name", ["self", "schema", "copy", "model_config", "json", "name", "tool_call_id"])
    def test_no_parameter_name_is_special(self, name: str) -> None:
        names: dict[str, Any] = {"Query": Query}
        exec(f"def f({name}: int, q: Query = None): return {name}", names)

        assert run(tool(names["f"]), **{name: "3"}) == 3

    def test_an_argument_that_kwargs_would_take_may_be_called_kwargs(self) -> None:
        @tool
        def f(**kwargs: Query) -> Any:
            return {name: each.text for name, each in kwargs.items()}

        assert run(f, kwargs={"text": "a"}, b={"text": "b"}) == {"kwargs": "a", "b": "b"}


def test_schemas_of_bound_and_plain_functions_have_no_titles_for_fields() -> None:
    @tool
    def f(a: int, q: Query) -> None: ...

    assert "title" not in f.schema["properties"]["a"]
    assert "title" not in f.schema["$defs"]["Query"]["properties"]["text"]


def test_compiling_twice_gives_the_same_schema() -> None:
    from pi_notebook.agent._docstrings import read_docstring

    def f(a: Query, b: set[str]) -> None: ...

    first, second = (compile_signature(f, "f", read_docstring(None)).schema for _ in range(2))
    assert first == second
    assert list(first) == list(second)
