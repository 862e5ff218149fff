# ruff: noqa: UP045 - Optional is one of the annotations that must work
from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
import inspect
import pickle
import sqlite3
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
from pi_notebook.agent._variable_types import NotebookVariable
from pi_notebook.agent.agent import Agent
from pi_notebook.agent.function_tool import FunctionTool, tool
from pi_notebook.agent.tool import Host, Progress, Tool, ToolContext, ToolResult
from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.errors import ToolDefinitionError, ToolError


def run(tool: Any, **arguments: Any) -> Any:
    """The value of one call; raises what the tool's failure was."""
    result = tool.call(**arguments)
    assert not result.is_error, result.text
    return result.value


class TestAsAFunction:
    def test_it_is_called_as_before(self) -> None:
        @tool
        def add(a: int, b: int = 2) -> int:
            """Add two numbers."""
            return a + b

        assert add(1) == 3
        assert add(1, b=5) == 6

    def test_it_keeps_name_docstring_and_signature(self) -> None:
        @tool(name="plus")
        def add(a: int, b: int = 2) -> int:
            """Add two numbers."""
            return a + b

        assert (add.__name__, add.__doc__, add.name) == ("add", "Add two numbers.", "plus")
        assert list(inspect.signature(add).parameters) == ["a", "b"]

    def test_an_async_function_still_gives_a_coroutine(self) -> None:
        @tool
        async def answer() -> int:
            return 42

        assert asyncio.run(answer()) == 42

    def test_a_context_is_made_up_where_a_person_gives_none(self) -> None:
        @tool
        def f(n: int, ctx: ToolContext) -> str:
            ctx.progress(1, 2)
            return ctx.tool_name

        assert f(1) == "f"

    def test_it_is_pickled_as_the_function_so_that_it_may_call_itself(self) -> None:
        import cloudpickle

        namespace: dict[str, Any] = {"tool": tool, "__name__": "__main__"}
        exec("@tool\ndef fact(n: int) -> int:\n    return 1 if n < 2 else n * fact(n - 1)", namespace)

        copied = pickle.loads(cloudpickle.dumps(namespace["fact"]))

        assert copied(5) == 120


class TestDescription:
    GOOGLE = """Do it.

        More of it.

        Args:
            a: First,
                wrapped.
            *rest: Others.

        Returns:
            The sum.
        """
    NUMPY = """Do it.

        More of it.

        Parameters
        ----------
        a : int
            First,
            wrapped.
        *rest : float
            Others.

        Returns
        -------
        int
            The sum.
        """
    SPHINX = """Do it.

        More of it.

        :param a: First,
            wrapped.
        :param rest: Others.
        :returns: The sum.
        """
    EPYDOC = """Do it.

        More of it.

        @param a: First,
            wrapped.
        @param rest: Others.
        @return: The sum.
        """

    @pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX, EPYDOC], ids=["google", "numpy", "sphinx", "epydoc"])
    def test_docstrings_of_four_styles_describe_function_and_parameters(self, doc: str) -> None:
        def f(a: int, *rest: float) -> float:
            return a + sum(rest)

        f.__doc__ = doc
        made = tool(f)

        assert made.description == "Do it.\n\nMore of it.\n\nReturns: The sum."
        assert made.schema["properties"]["a"]["description"] == "First, wrapped."
        assert made.schema["properties"]["rest"]["description"] == "Others."

    def test_a_docstring_without_sections_stays_as_it_is(self) -> None:
        @tool
        def f() -> None:
            """First line.

            A list:
              - one
              - two
            """

        assert f.description == "First line.\n\nA list:\n  - one\n  - two"

    def test_without_a_docstring_the_signature_is_the_description(self) -> None:
        @tool
        def f(a, b=2):  # type: ignore[no-untyped-def]
            return a

        assert f.description == "f(a, b=2)"

    def test_what_the_annotation_says_wins_over_the_docstring(self) -> None:
        @tool
        def f(a: Annotated[int, "annotated"], b: Annotated[int, Field(description="field")], c: int) -> None:
            """F.

            Args:
                a: doc a
                b: doc b
                c: doc c
            """

        assert [each["description"] for each in f.schema["properties"].values()] == ["annotated", "field", "doc c"]

    def test_a_type_named_in_the_docstring_alone_is_told(self) -> None:
        @tool
        def f(a):  # type: ignore[no-untyped-def]
            """F.

            Parameters
            ----------
            a : list of floats
                Values.
            """

        assert f.schema["properties"]["a"] == {"description": "(list of floats) Values."}


class Query(BaseModel):
    text: str
    limit: int = 10


class Search:
    """Find things."""

    def __init__(self, base: int) -> None:
        self.base = base

    @tool
    def plus(self, n: int) -> int:
        """Add to the base."""
        return self.base + n

    @tool
    @classmethod
    def kind(cls, n: int) -> str:
        """Name of the class."""
        return f"{cls.__name__}{n}"

    @tool
    @staticmethod
    def twice(n: int) -> int:
        """Double."""
        return 2 * n

    def minus(self, n: int) -> int:
        """Subtract from the base."""
        return self.base - n

    def __call__(self, n: int) -> int:
        """Call it."""
        return self.base * n


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class TestKindsOfCallables:
    def test_a_method_decorated_in_its_class_is_a_tool_of_its_object(self) -> None:
        assert Search(5).plus(1) == 6
        assert run(Search(5).plus, n="1") == 6
        assert list(Search(5).plus.schema["properties"]) == ["n"]

    def test_a_method_without_its_object_says_so(self) -> None:
        with pytest.raises(ToolDefinitionError, match="'plus' is a method: give the agent the one of an object"):
            Search.plus.schema

    def test_class_methods_and_static_methods(self) -> None:
        assert run(Search.kind, n=1) == "Search1"
        assert run(Search(0).kind, n=1) == "Search1"
        assert run(Search.twice, n=2) == 4

    def test_class_methods_without_a_docstring_and_under_their_decorator(self) -> None:
        class Counter:
            step = 2

            @tool
            @classmethod
            def bare(cls, n: int) -> int:
                return n * cls.step

            @classmethod
            @tool
            def under(cls, n: int) -> int:
                """Times the step."""
                return n * cls.step

        class Faster(Counter):
            step = 3

        assert (run(Counter.bare, n=1), run(Faster.bare, n=1), Counter.bare(2)) == (2, 3, 4)
        assert Counter.bare.description.startswith("bare(n:")
        assert (run(Counter.under, n=1), run(Faster().under, n=1), Faster.under(2)) == (2, 3, 6)
        assert Counter.under.description == "Times the step."

    def test_a_method_of_an_object(self) -> None:
        minus = tool(Search(5).minus)

        assert (minus.name, minus.description) == ("minus", "Subtract from the base.")
        assert run(minus, n=1) == 4

    def test_a_callable_object(self) -> None:
        times = tool(Search(5), name="times")

        assert (times.description, list(times.schema["properties"])) == ("Call it.", ["n"])
        assert run(times, n=3) == 15

    def test_a_partial_hides_what_it_has_fixed(self) -> None:
        def fetch(url: str, key: str, retries: int = 1) -> str:
            return f"{url} {key} {retries}"

        made = tool(functools.partial(fetch, key="secret"))

        assert made.name == "fetch"
        assert list(made.schema["properties"]) == ["url", "retries"]
        assert "secret" not in str(made.schema)
        assert run(made, url="u") == "u secret 1"

    def test_a_wrapped_function_keeps_its_signature(self) -> None:
        @tool
        @wrapped
        def f(n: int) -> int:
            return n + 1

        assert f.schema["properties"] == {"n": {"type": "integer"}}
        assert run(f, n="2") == 3

    def test_a_plain_wrapper_around_an_async_function_is_awaited(self) -> None:
        @tool
        @wrapped
        async def f(n: int) -> int:
            await asyncio.sleep(0)
            return n + 1

        assert run(f, n=1) == 2

    def test_a_lambda_needs_a_name(self) -> None:
        assert run(tool(lambda n: n * 2, name="double"), n=2) == 4
        with pytest.raises(ToolDefinitionError, match="lambda has no name that a model could call: pass name="):
            tool(lambda n: n)

    def test_a_class(self) -> None:
        @dataclasses.dataclass
        class Point:
            x: int
            y: int = 0

        assert run(tool(Point, name="point"), x=1) == Point(1)

    def test_a_builtin_with_a_signature(self) -> None:
        import math

        assert run(tool(math.sqrt), x=9) == 3

    def test_a_builtin_without_a_signature_is_refused(self) -> None:
        with pytest.raises(ToolDefinitionError, match="does not tell its parameters"):
            tool(max)

    def test_a_tool_made_of_a_tool_takes_new_options(self) -> None:
        @tool
        def f(n: int) -> int:
            return n

        again = tool(f, name="g", execution_mode="sequential")

        assert (again.name, again.execution_mode, again.function) == ("g", "sequential", f.function)

    def test_what_is_no_function_is_refused(self) -> None:
        with pytest.raises(ToolDefinitionError, match="makes tools of functions, not of 3"):
            tool(3)  # type: ignore[call-overload]


class TestOptions:
    @pytest.mark.parametrize(
        ("option", "hint"),
        [
            ("approve", "Did you mean approval=?"),
            ("discription", "Did you mean description=?"),
            ("time_out", "Did you mean timeout=?"),
            ("zzz", "Known: name, label, description"),
        ],
    )
    def test_an_unknown_option_is_refused_with_a_hint(self, option: str, hint: str) -> None:
        with pytest.raises(ToolDefinitionError) as raised:
            tool(**{option: True})
        assert f"@tool has no option {option!r}. {hint}" in str(raised.value)

    def test_a_positional_name_is_refused(self) -> None:
        with pytest.raises(ToolDefinitionError, match=r"by name: @tool\(name='search'\)"):
            tool("search")  # type: ignore[call-overload]
        with pytest.raises(ToolDefinitionError, match="takes one function"):
            tool(run, "search")  # type: ignore[call-overload]

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"thread": "main"}, "thread must be 'worker' or None, not 'main'"),
            ({"approval": "yes"}, "approval must be True, False or a plain function"),
            ({"timeout": 0}, "timeout must be seconds above 0, not 0"),
            ({"executor": 3}, "executor must have submit()"),
            ({"name": "my tool"}, "Tool name 'my tool' cannot be used"),
            ({"execution_mode": "both"}, "execution_mode must be 'sequential', 'parallel' or None"),
            ({"constrained_sampling": "yes"}, "constrained_sampling must be 'prefer', 'require' or None"),
            ({"parameters": 3}, "parameters must be a JSON Schema (dict) or a pydantic model class, not 3"),
        ],
    )
    def test_a_bad_value_is_refused_where_the_tool_is_defined(self, options: dict[str, Any], text: str) -> None:
        with pytest.raises(ToolDefinitionError) as raised:
            tool(lambda: None, **{"name": "f", **options})
        assert text in str(raised.value)

    def test_threads_and_executors_are_not_for_async_functions(self) -> None:
        async def f() -> None: ...

        with pytest.raises(ToolDefinitionError, match="an `async def` runs on the agent's loop"):
            tool(thread="worker")(f)

    def test_a_schema_instead_of_the_signature(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

        @tool(parameters=schema)
        def f(n, ctx: ToolContext):  # type: ignore[no-untyped-def]
            return n + 1

        assert f.schema == schema
        assert run(f, n="2") == 3

    def test_a_function_with_one_parameter_takes_the_arguments_whole(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

        assert run(tool(lambda given: given, name="f", parameters=schema), n="2") == {"n": 2}

    def test_a_model_instead_of_the_signature(self) -> None:
        @tool(parameters=Query)
        def whole(query: Query) -> str:
            return repr(query)

        @tool(parameters=Query)
        def parts(text: str, limit: int = 3) -> str:
            return f"{text} {limit}"

        assert run(whole, text="a", limit="5") == "Query(text='a', limit=5)"
        assert run(parts, text="a") == "a 3"

    def test_parameters_that_the_function_does_not_take_are_refused(self) -> None:
        schema = {"type": "object", "properties": {"n": {}, "m": {}}}
        with pytest.raises(ToolDefinitionError, match="describes 'm', which the function does not take"):
            tool(name="f", parameters=schema)(lambda n, k=1: n)
        with pytest.raises(ToolDefinitionError, match="the function needs 'k', which parameters= does not describe"):
            tool(name="f", parameters={"type": "object", "properties": {"n": {}}})(lambda n, k: n)

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ({"type": "array"}, "Its schema is of type 'array': arguments are an object, so wrap it in one."),
            ({"properties": ["a"]}, "The 'properties' of its schema must be a dict of name to schema."),
            ({"required": "a"}, "The 'required' of its schema must be a list of names."),
            (
                {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}},
                "The schema refers to '#/$defs/b' at properties.a.$ref, which is not there: define it.",
            ),
        ],
    )
    def test_a_schema_that_cannot_be_used_is_refused_where_it_is_written(self, schema: Any, reason: str) -> None:
        async def execute(*_: Any) -> Any: ...

        for define in (
            lambda: tool(name="f", parameters=schema)(lambda a: a),
            lambda: Tool("f", "F.", schema, execute),
        ):
            with pytest.raises(ToolDefinitionError) as raised:
                define()
            assert str(raised.value) == f"Tool 'f' cannot be used. {reason}"

    def test_a_shim_mends_raw_arguments(self) -> None:
        @tool(prepare_arguments=lambda raw: {"n": raw["number"]})
        def f(n: int) -> int:
            return n

        assert run(f, number="4") == 4


class NotJson:
    pass


def test_a_person_passes_an_object_to_a_parameter_without_an_annotation() -> None:
    import pandas as pd

    frame = pd.DataFrame({"n": [1]})

    @tool
    def plain(first, /, second, *, third=None):  # type: ignore[no-untyped-def]
        return [first is frame, second is frame, third]

    assert plain.call(first=frame, second=frame, third="_first?").value == [True, True, "_first?"]


class TestRefusedParameters:
    @pytest.mark.parametrize(
        "annotation",
        [Callable[[int], int], NotJson, threading.Event, type[int], typing.Self, list[NotJson], Optional[NotJson], 3],
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


class Named(Host):
    def __init__(self, **values: Any) -> None:
        self.values = values

    def variables(self) -> dict[str, Any]:
        return self.values


def with_host(made: FunctionTool[Any, Any], host: Host, **arguments: Any) -> ToolResult:
    from pi_notebook.agent.single_call import run_tool_call
    from pi_notebook.ai.messages import ToolCall

    return asyncio.run(run_tool_call(ToolCall("c", made.name, arguments), [made], ask=False, host=host))


class TestVariables:
    def test_the_model_passes_the_name_of_a_dataframe(self) -> None:
        import pandas as pd

        sales = pd.DataFrame({"price": [1, 3]})

        @tool
        def mean(table: pd.DataFrame, column: str) -> float:
            """Mean.

            Args:
                table: Where to look.
            """
            return float(table[column].mean())

        assert mean.schema["properties"]["table"] == {
            "type": "string",
            "description": "Where to look. Name of a variable in the notebook that holds a pandas.DataFrame.",
        }
        assert with_host(mean, Named(sales=sales), table="sales", column="price").value == 2.0

    def test_a_wrong_name_is_answered_with_those_that_would_do(self) -> None:
        import pandas as pd

        @tool
        def f(table: pd.DataFrame) -> None: ...

        frame = pd.DataFrame()
        host = Named(sales=frame, prices=frame, n=3, _hidden=frame)

        assert (
            "table: there is no variable 'slaes'; variables that hold a pandas.DataFrame: sales, prices"
            in with_host(f, host, table="slaes").text
        )
        assert (
            "table: variable 'n' holds int, not pandas.DataFrame; variables that hold a pandas.DataFrame: sales, prices"
            in with_host(f, host, table="n").text
        )
        assert "no variable holds a pandas.DataFrame" in with_host(f, Named(), table="sales").text

    def test_optional_lists_and_dicts_of_them(self) -> None:
        import numpy as np
        from matplotlib.figure import Figure

        @tool
        def f(many: list[np.ndarray], named: dict[str, Figure], maybe: Optional[np.ndarray] = None) -> Any:
            return [each.shape for each in many], list(named), maybe

        host = Named(a=np.zeros(2), b=np.zeros((1, 2)), fig=Figure())

        assert with_host(f, host, many=["a", "b"], named={"x": "fig"}).value == ([(2,), (1, 2)], ["x"], None)

    def test_a_class_of_ones_own_can_be_marked(self) -> None:
        @tool
        def f(thing: Annotated[NotJson, NotebookVariable()]) -> str:
            return type(thing).__name__

        assert with_host(f, Named(it=NotJson()), thing="it").value == "NotJson"
        assert "there is no variable 'x'; variables that hold a NotJson: it" in with_host(
            f, Named(it=NotJson()), thing="x"
        ).text.replace("test_function_tool.", "").replace("tests.", "")

    def test_a_marked_class_may_be_optional(self) -> None:
        @tool
        def f(thing: Annotated[NotJson | None, NotebookVariable()] = None) -> str:
            return type(thing).__name__

        assert with_host(f, Named(it=NotJson()), thing="it").value == "NotJson"
        assert with_host(f, Named(), thing=None).value == "NoneType"

    def test_in_code_the_object_itself_can_be_passed(self) -> None:
        import pandas as pd

        @tool
        def total(table: pd.DataFrame, when: Any = None) -> int:
            return int(table["n"].sum())

        assert run(total, table=pd.DataFrame({"n": [1, 2]})) == 3

    def test_a_sqlite_handle_works_on_the_thread_it_was_made_on(self) -> None:
        handle = sqlite3.connect(":memory:")

        @tool
        def query(db: sqlite3.Connection, sql: str) -> Any:
            return db.execute(sql).fetchall()

        assert run(query, db=handle, sql="select 1") == [(1,)]


class TestRunning:
    def test_async_tools_run_at_once_on_the_loop(self) -> None:
        inside = 0
        both = asyncio.Event()

        @tool
        async def meet() -> str:
            nonlocal inside
            inside += 1
            if inside == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 20)
            return "met"

        agent = Agent(model=scripted([call("meet"), call("meet")], "done"), tools=[meet])
        outcome = asyncio.run(agent.prompt("go"))

        assert [each.result.text for each in outcome.tool_calls] == ["met", "met"]

    def test_worker_tools_run_at_once_on_daemon_threads(self) -> None:
        meeting = threading.Barrier(2, timeout=20)

        @tool(thread="worker")
        def meet() -> bool:
            meeting.wait()
            return threading.current_thread().daemon

        agent = Agent(model=scripted([call("meet"), call("meet")], "done"), tools=[meet])
        outcome = asyncio.run(agent.prompt("go"))

        assert [each.result.text for each in outcome.tool_calls] == ["true", "true"]

    def test_context_variables_are_seen_and_not_changed(self) -> None:
        variable = contextvars.ContextVar("variable", default="unset")
        variable.set("outside")

        @tool
        def f() -> str:
            seen = variable.get()
            variable.set("inside")
            return seen

        assert run(f) == "outside"
        assert variable.get() == "outside"

    def test_each_yield_is_an_update_and_the_returned_value_the_result(self) -> None:
        updates: list[Any] = []

        @tool
        def steps(n: int) -> Any:
            for i in range(n):
                yield f"step {i}"
            return "all done"

        result = asyncio.run(steps.execute("c", steps.bind({"n": 2}), None, updates.append))

        assert [update.text for update in updates] == ["step 0", "step 1"]
        assert result.text == "all done"

    def test_async_generators_end_with_what_they_yielded_last(self) -> None:
        updates: list[Any] = []

        @tool
        async def steps() -> Any:
            yield "a"
            yield {"b": 1}

        result = asyncio.run(steps.execute("c", steps.bind({}), None, updates.append))

        assert [update.text for update in updates] == ["a", '{"b": 1}']
        assert (result.text, result.value) == ('{"b": 1}', {"b": 1})

    def test_an_abort_ends_a_generator_between_two_steps(self) -> None:
        controller = AbortController()
        closed = []

        @tool
        def steps() -> Any:
            try:
                yield from range(1000)
            finally:
                closed.append(True)

        with pytest.raises(Exception, match="stop now"):
            asyncio.run(
                steps.execute("c", steps.bind({}), controller.signal, lambda update: controller.abort("stop now"))
            )
        assert closed == [True]

    def test_track_moves_the_bar(self) -> None:
        updates: list[Any] = []

        @tool
        def f(ctx: ToolContext) -> int:
            return sum(ctx.track([1, 2], "adding"))

        result = asyncio.run(f.execute("c", {}, None, updates.append))

        assert result.value == 3
        assert [update.details for update in updates] == [
            Progress(0, 2, "adding"),
            Progress(1, 2, "adding"),
            Progress(2, 2, "adding"),
        ]

    def test_a_tool_result_is_passed_on_as_it_is(self) -> None:
        shared = ToolResult("short", details={"all": 1}, terminate=True)

        @tool
        def f() -> ToolResult:
            return shared

        result = f.call()

        assert (result.text, result.details, result.terminate, result.value) == ("short", {"all": 1}, True, {"all": 1})
        assert shared.duration_ms is None, "the tool's own object must not be changed"

    def test_a_ctrl_c_in_a_persons_call_reaches_the_person(self) -> None:
        signals = []

        @tool
        def f(ctx: ToolContext) -> None:
            signals.append(ctx.signal)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            f.call()
        assert signals[0].aborted

    def test_a_call_works_inside_a_running_loop(self) -> None:
        @tool
        def f() -> str:
            return threading.current_thread().name

        async def inside() -> Any:
            return f.call().value

        assert asyncio.run(inside()) == threading.current_thread().name


class TestErrors:
    def test_the_model_gets_type_text_and_line(self) -> None:
        @tool
        def f(n: int) -> float:
            inner = n
            return 1 / inner

        result = f.call(n=0)

        line = inspect.getsourcelines(f.function)[1] + 3
        assert result.text == (
            f"ZeroDivisionError: division by zero\nat test_function_tool.py, line {line}, in f: return 1 / inner"
        )
        assert isinstance(result.error, ZeroDivisionError)

    def test_a_tool_error_is_its_text(self) -> None:
        @tool
        async def f() -> None:
            raise ToolError("Try another city.")

        assert f.call().text == "Try another city."

    @pytest.mark.parametrize("raised", [SystemExit(3), StopIteration("end"), GeneratorExit(), KeyError("k")], ids=repr)
    @pytest.mark.parametrize("thread", [None, "worker"])
    def test_no_exception_of_a_tool_ends_more_than_the_tool(self, raised: BaseException, thread: Any) -> None:
        @tool(thread=thread)
        def f() -> None:
            raise raised

        assert f.call().text.startswith((f"RuntimeError: {type(raised).__name__}", "KeyError: 'k'"))

    def test_an_async_tool_that_exits_does_not_end_the_loop(self) -> None:
        @tool
        async def f() -> None:
            sys.exit("bye")

        assert f.call().text.startswith("RuntimeError: SystemExit: bye")

    def test_an_object_of_another_loop_is_named_as_the_cause(self) -> None:
        other = asyncio.new_event_loop()
        future = other.create_future()
        lock = asyncio.Lock()

        async def bind() -> None:
            await lock.acquire()
            waiting = asyncio.ensure_future(lock.acquire())
            await asyncio.sleep(0)
            waiting.cancel()

        other.run_until_complete(bind())

        @tool
        async def awaits() -> None:
            await future

        @tool
        async def locks() -> None:
            await lock.acquire()

        for each in (awaits, locks):
            text = each.call().text
            assert "was made on another event loop" in text
            assert "make the object inside the tool, or make the tool a plain `def`" in text
        other.close()


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
