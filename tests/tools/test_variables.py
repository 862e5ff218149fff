from __future__ import annotations

import datetime
import decimal
import pathlib
import sys
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.tools._preview import MAX_PREVIEW, Summary, summary, text_of
from pi_notebook.tools._variables import variables_tool


def listed(**namespace: Any) -> str:
    return variables_tool(namespace).call().text


def test_variables_are_listed_by_type_shape_size_and_preview() -> None:
    def helper(a: int, *rest: int, key: int = 1, **more: int) -> None: ...

    numbers = [1, 2, 3]
    text = listed(
        numbers=numbers,
        name="Ada",
        prices=pd.DataFrame({"item": ["a", "b"], "price": [1.5, 2.5]}),
        grid=np.zeros((3, 4)),
        helper=helper,
        Thing=type("Thing", (), {}),
        np=np,
        _hidden=1,
        In=[],
        get_ipython=len,
    )
    assert text == (
        "grid: numpy.ndarray, 3 x 4, 96 bytes; float64: 0.0, 0.0, 0.0, 0.0, 0.0, …\n"
        f"name: str, 3 characters, {sys.getsizeof('Ada')} bytes; 'Ada'\n"
        f"numbers: list, 3 items, {sys.getsizeof(numbers)} bytes; [1, 2, 3]\n"
        f"prices: pandas.DataFrame, 2 x 2, {prices_size()}; item, price\n"
        "Functions: helper\nClasses: Thing\nModules: np"
    )


def prices_size() -> str:
    frame = pd.DataFrame({"item": ["a", "b"], "price": [1.5, 2.5]})
    return f"{int(frame.memory_usage(deep=False).sum())} bytes"


def test_an_empty_namespace_says_so() -> None:
    assert listed() == "(no variables)"


def test_the_notebook_may_hide_names() -> None:
    tool = variables_tool({"a": 1, "b": 2}, lambda name, value: name == "a")
    assert tool.call().text == f"b: int, {sys.getsizeof(2)} bytes; 2"


def test_one_variable_closely() -> None:
    frame = pd.DataFrame(
        {"item": ["a", None], "price": [1.5, 2.5], "day": pd.to_datetime(["2024-01-01", "2024-01-02"])}
    )
    tool = variables_tool({"frame": frame, "x": list(range(200))})
    lines = tool.call(name="frame").text.split("\n")
    assert lines[0].startswith("frame: pandas.DataFrame, 2 x 3, ")
    assert lines[1].startswith("item: ")
    assert lines[1].endswith(", 1 missing")
    assert lines[2:] == [
        "price: float64, 0 missing",
        f"day: {frame.dtypes['day']}, 0 missing",
        "first 2 rows:",
        "0: 'a', 1.5, 2024-01-01T00:00:00",
        f"1: {text_of(frame['item'][1], 40)}, 2.5, 2024-01-02T00:00:00",
    ]
    assert tool.call(name="x").text.endswith("98, 99, …]")


def test_a_function_closely() -> None:
    def area(width: float, height: float = 1) -> float:
        """Area of a rectangle."""
        return width * height

    assert variables_tool({"area": area}).call(name="area").text == (
        "area: function; area(width, height)\nArea of a rectangle."
    )


@pytest.mark.parametrize("name", ["a.b", "a[0]", "f()", "1", "a\nb", "__import__('os')"])
def test_only_names_are_taken(name: str) -> None:
    result = variables_tool({"a": 1}).call(name=name)
    assert result.is_error
    assert result.text.endswith("is not the name of a variable; use python for expressions and attributes.")


def test_an_unknown_name_is_an_error() -> None:
    assert variables_tool({}).call(name="a").text == ("There is no variable a. List them all by leaving the name out.")


def test_many_variables_are_cut() -> None:
    text = listed(**{f"v{n:03}": n for n in range(300)})
    assert text.endswith("[100 more variables are left out; ask for one by name.]")


# ---- nothing of an unknown object is run ----------------------------------------------------------

RAN: list[str] = []


class Trap(type):
    """A class whose every move is noted."""

    def __getattribute__(cls, name: str) -> Any:
        RAN.append(f"class.{name}")
        return super().__getattribute__(name)

    def __repr__(cls) -> str:
        RAN.append("class repr")
        return "Trap"

    def __instancecheck__(cls, instance: Any) -> bool:
        RAN.append("instancecheck")
        return True

    def __subclasscheck__(cls, other: Any) -> bool:
        RAN.append("subclasscheck")
        return True

    def __eq__(cls, other: object) -> bool:
        RAN.append("class eq")
        return True

    def __hash__(cls) -> int:
        RAN.append("class hash")
        return hash(list)

    def __bool__(cls) -> bool:
        RAN.append("class bool")
        return False

    def __len__(cls) -> int:
        RAN.append("class len")
        return 0


class Name(str):
    """A name of a class or function that is not quite a text."""

    def rpartition(self, separator: str, /) -> Any:
        RAN.append("name rpartition")
        return super().rpartition(separator)

    def isprintable(self) -> bool:
        RAN.append("name isprintable")
        return True

    def __str__(self) -> str:
        RAN.append("name str")
        return "lies"

    def __format__(self, spec: str) -> str:
        RAN.append("name format")
        return "lies"


def noted(name: str) -> Any:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        RAN.append(name)
        if name == "__hash__":
            return 1
        if name == "__getattribute__":
            return object.__getattribute__(self, *args)
        raise AttributeError(name)

    return method


SPECIAL = ["__repr__", "__str__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__sizeof__"]
SPECIAL += ["__getattr__", "__dir__", "__format__", "__contains__", "__getitem__", "__getattribute__"]


def trapped(*bases: type, **more: Any) -> type:
    body = {name: noted(name) for name in SPECIAL if name not in more}
    properties = {
        name: property(noted(name)) for name in ("shape", "dtype", "columns", "nbytes", "__class__", "__dict__")
    }
    return Trap("Secret", bases, {**body, **properties, **more})


def trapped_values() -> dict[str, Any]:
    plain = trapped()
    plain.__qualname__ = Name("Secret")
    value = object.__new__(plain)

    def function() -> None: ...

    function.__name__ = Name("Secret")
    values: dict[str, Any] = {"plain": value, "kind": plain, "function": function}
    for base in (list, dict, str, int, float, tuple, set, bytes, datetime.date, decimal.Decimal):
        kind = trapped(base)
        values[base.__name__] = base.__new__(kind, 2020, 1, 1) if base is datetime.date else base.__new__(kind)
    array = np.array([None, None], dtype=object)
    array[0] = value
    values["array"] = array
    values["held"] = [value, {"k": value}, (value,)]
    values["series"] = pd.Series(array)
    values["frame"] = pd.DataFrame({"a": [1, 2], "o": values["series"]})
    values["module"] = types.ModuleType("m")
    vars(values["module"])["__name__"] = value
    return values


@pytest.mark.parametrize("name", sorted(trapped_values()))
@pytest.mark.parametrize("closer", [False, True])
def test_no_code_of_an_unknown_class_runs(name: str, closer: bool) -> None:
    value = trapped_values()[name]
    RAN.clear()
    found = summary(value, closer=closer)
    variables_tool({"v": value}).call(**({"name": "v"} if closer else {}))
    ran = list(RAN)
    assert ran == []
    assert ("Secret" in f"{found.type} {found.preview} {found.detail}") is (
        name != "module" and (closer or name != "frame")
    )


def test_a_class_that_cannot_be_hashed_or_compared_is_one_like_any_other() -> None:
    def fail(*args: Any) -> Any:
        raise ValueError("no")

    odd = type("Odd", (type,), dict.fromkeys(["__hash__", "__eq__", "__ne__"], fail))
    text = listed(a=1, q=odd("Q", (), {})(), held=[odd("R", (), {})()], Kind=odd("Kind", (), {}))
    assert text.startswith(f"a: int, {sys.getsizeof(1)} bytes; 1\nheld: list, 1 item, ")
    assert text.endswith(" bytes; [<tests.R>]\nq: tests.Q\nClasses: Kind")


def test_subclasses_of_known_classes_are_unknown() -> None:
    class Frame(pd.DataFrame):
        @property
        def shape(self) -> Any:
            raise RuntimeError

    found = summary(Frame({"a": [1]}), closer=True)
    assert found == Summary("tests.Frame", preview="<tests.Frame>")


def test_what_lies_about_itself_is_told_by_its_true_type() -> None:
    class Liar:
        __class__ = pd.DataFrame  # type: ignore[assignment]

    assert summary(Liar()).type.endswith("Liar")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ((1,), "(1,)"),
        (set(), "set()"),
        (frozenset({1}), "frozenset({1})"),
        ({}, "{}"),
        ({"a": [1, {"b": ()}]}, "{'a': [1, {'b': ()}]}"),
        (b"x", "b'x'"),
        ("a\nb\u202ec", r"'a\nb\u202ec'"),
        (decimal.Decimal("1.5"), "Decimal('1.5')"),
        (datetime.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (pathlib.PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (range(3), "range(0, 3)"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …]"),
        ("x" * 1000, "'" + "x" * 78 + "…"),
        (1 << 10_000, "<int with 10,001 bits>"),
        (object(), "<object>"),
        (int, "<class int>"),
        (types, "<module types>"),
    ],
)
def test_previews(value: Any, text: str) -> None:
    assert text_of(value, MAX_PREVIEW) == text


def test_circles_end() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    assert text_of(circle, 80) == "[1, …]"


def test_a_deep_value_and_a_large_one_are_quick() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert text_of(deep, 80) == "[[[[…]]]]"
    wide = [["x" * 1000] * 1000] * 1000
    assert len(text_of(wide, 80)) == 80
    assert summary("x" * 10_000_000, closer=True).shape == "10,000,000 characters"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4) | st.tuples(inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_short_previews_are_reprs(value: Any) -> None:
    text = text_of(value, 10_000)
    if "…" not in text and "bits>" not in text:
        assert text == repr(value)
    assert "\n" not in text
    text.encode()


def test_numbers_of_arrays_are_plain() -> None:
    assert summary(np.array([1, 2])).preview == "int64: 1, 2"
    assert summary(np.array(5.0)) == Summary("numpy.ndarray", "scalar", 8, "float64: 5.0")
    assert summary(np.zeros((0, 3))).shape == "0 x 3"
    assert summary(np.zeros((1000, 1000))[:, ::2]).preview.startswith("float64: 0.0, 0.0")


def test_frames_of_many_columns_and_odd_labels() -> None:
    frame = pd.DataFrame(np.zeros((3, 100)))
    assert summary(frame).shape == "3 x 100"
    assert len(summary(frame).preview) <= MAX_PREVIEW
    odd = pd.DataFrame([[1, 2, 3]], columns=pd.Index(["a", "a", ("t", 1)], dtype=object))
    assert summary(odd, closer=True).preview == "a, a, ('t', 1)"
    assert summary(pd.DataFrame(), closer=True).shape == "0 x 0"


def test_a_series_is_described() -> None:
    found = summary(pd.Series([1, 2], name="n"), closer=True)
    assert (found.type, found.shape, found.preview) == ("pandas.Series", "2 items", "int64: 1, 2")
    assert found.detail == "name 'n'\nint64: 1, 2"
