"""@tool: the function stays what it was; its description, its kinds and its options."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.tool import Tool, ToolContext
from pi_notebook.errors import ToolDefinitionError


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

    def test_a_person_hands_over_all_fields_of_an_object(self) -> None:
        @dataclasses.dataclass
        class Login:
            user: str
            password: str = dataclasses.field(default="", repr=False)

        @tool
        def log_in(login: Login) -> str:
            return login.password

        assert log_in.call(login=Login("a", "secret")).value == "secret"

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
            ({"timeout": True}, "timeout must be seconds above 0, not True"),
            ({"prepare_arguments": 5}, "prepare_arguments must be a function of the raw arguments, not 5"),
            ({"description": 5}, "description must be text, not 5"),
            ({"label": 5}, "label must be text, not 5"),
            ({"name": ""}, "Tool name '' cannot be used"),
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

        @tool(parameters=Query)
        def bare(text, limit):  # type: ignore[no-untyped-def]
            return f"{text} {limit}"

        assert run(bare, text="a") == "a 10", "what the schema promised"

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


def test_a_person_passes_an_object_to_a_parameter_without_an_annotation() -> None:
    import pandas as pd

    frame = pd.DataFrame({"n": [1]})

    @tool
    def plain(first, /, second, *, third=None):  # type: ignore[no-untyped-def]
        return [first is frame, second is frame, third]

    assert plain.call(first=frame, second=frame, third="_first?").value == [True, True, "_first?"]
