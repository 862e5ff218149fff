"""The tables of `docs/tools.md`, made from running code. `python -m tests.agent.tables` writes them into the page."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import pathlib
import sqlite3
import typing
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

from pydantic import BaseModel, Field

from pi_notebook.agent import tool as contract
from pi_notebook.agent.function_tool import FunctionTool
from pi_notebook.agent.results import to_content
from pi_notebook.agent.tool import Host, ToolContext

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tools.md"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Paint(enum.Enum):
    RED = (255, 0, 0)
    BLUE = (0, 0, 255)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    street: str
    zip: int | None = None


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@dataclass
class Point:
    x: float
    y: float = 0.0


class Options(typing.TypedDict):
    depth: int
    name: typing.NotRequired[str]


class Span(NamedTuple):
    start: int
    end: int = 10


def namespace() -> dict[str, Any]:
    """What the sources of the tables may use."""
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from PIL import Image

    own = {each.__name__: each for each in (Color, Paint, Level, Address, Tree, Point, Options, Span)}
    shared = {
        "Annotated": Annotated, "Any": Any, "Field": Field, "Literal": Literal, "Optional": Optional, "Union": Union,
        "Path": pathlib.Path, "Decimal": decimal.Decimal, "UUID": uuid.UUID, "date": datetime.date,
        "datetime": datetime.datetime, "timedelta": datetime.timedelta, "np": np, "pd": pd, "Figure": Figure,
        "Image": Image, "sqlite3": sqlite3, "ToolContext": ToolContext, "Unpack": typing.Unpack,
    }  # fmt: skip
    return {**own, **shared}


class Variables(Host):
    """A host whose notebook has the variable `sales`, a DataFrame, and `m`, an array."""

    def variables(self) -> dict[str, Any]:
        import numpy as np
        import pandas as pd

        return {"sales": pd.DataFrame({"price": [1.5, 2.5]}), "m": np.zeros((2, 2)), "n": 3}


@contextmanager
def a_notebook() -> Iterator[None]:
    token = contract._current.set(ToolContext(host=Variables()))
    try:
        yield
    finally:
        contract._current.reset(token)


@dataclass(frozen=True)
class SignatureRow:
    """`def f(parameters)`; the schema of the parameter `x` (or of all, if `whole`); one call of a model."""

    parameters: str
    arguments: dict[str, Any]
    received: str
    whole: bool = False

    @property
    def tool(self) -> FunctionTool[Any, Any]:
        names = namespace()
        exec(f"def f({self.parameters}): ...", names)
        return FunctionTool(names["f"])

    def schema(self) -> dict[str, Any]:
        schema = self.tool.schema
        shown = {k: v for k, v in schema.items() if k != "$defs"} if self.whole else schema["properties"]["x"]
        if list(shown) == ["$ref"]:
            shown = schema["$defs"][shown["$ref"].rpartition("/")[2]]
        return typing.cast(dict[str, Any], shown)

    def call(self) -> str:
        tool = self.tool
        with a_notebook():
            bound = tool.bind(tool.check(self.arguments))
        parts = [repr(each) for each in bound.args]
        parts += [f"{name}={value!r}" for name, value in bound.kwargs.items()]
        return ", ".join(parts)


def _x(annotation: str, value: Any, received: str) -> SignatureRow:
    return SignatureRow(f"x: {annotation}", {"x": value}, f"x={received}")


SIGNATURES = [
    _x("str", "a", "'a'"),
    _x("int", "3", "3"),
    _x("int", 3.0, "3"),
    _x("float", 3, "3.0"),
    _x("bool", "true", "True"),
    _x("Optional[int]", None, "None"),
    _x("int | str", "a", "'a'"),
    _x("Union[int, list[int]]", [1, 2], "[1, 2]"),
    _x("Literal['fast', 'slow']", "fast", "'fast'"),
    _x("Literal[1, 2, 4]", "2", "2"),
    _x("Color", "red", "<Color.RED: 'red'>"),
    _x("Paint", "RED", "<Paint.RED: (255, 0, 0)>"),
    _x("Level", 2, "<Level.HIGH: 2>"),
    _x("list[int]", ["1", 2], "[1, 2]"),
    _x("list", [1, "a"], "[1, 'a']"),
    _x("dict[str, float]", {"a": 1}, "{'a': 1.0}"),
    _x("dict[int, str]", {"1": "a"}, "{1: 'a'}"),
    _x("tuple[int, str]", [1, "a"], "(1, 'a')"),
    _x("tuple[int, ...]", [1, 2], "(1, 2)"),
    _x("set[str]", ["a"], "{'a'}"),
    _x("date", "2024-05-01", "datetime.date(2024, 5, 1)"),
    _x("datetime", "2024-05-01T12:00:00", "datetime.datetime(2024, 5, 1, 12, 0)"),
    _x("timedelta", "PT90S", "datetime.timedelta(seconds=90)"),
    _x("Path", "data/a.csv", "PosixPath('data/a.csv')"),
    _x("Decimal", "1.50", "Decimal('1.50')"),
    _x("bytes", "abc", "b'abc'"),
    _x("Address", {"street": "a"}, "Address(street='a', zip=None)"),
    _x("Tree", {"value": 1, "children": [{"value": 2}]},
       "Tree(value=1, children=[Tree(value=2, children=[])])"),
    _x("Point", {"x": 1}, "Point(x=1.0, y=0.0)"),
    _x("Options", {"depth": 1}, "{'depth': 1}"),
    _x("Span", [1], "Span(start=1, end=10)"),
    _x("Annotated[int, Field(ge=1, le=9)]", 5, "5"),
    _x("Annotated[str, 'Name of the city']", "Paris", "'Paris'"),
    _x("pd.DataFrame", "sales", "   price\n0    1.5\n1    2.5"),
    _x("np.ndarray | None", "m", "array([[0., 0.],\n       [0., 0.]])"),
    _x("np.float32", 1.5, "np.float32(1.5)"),
    _x("pd.Timestamp", "2024-05-01", "Timestamp('2024-05-01 00:00:00')"),
    _x("'Address'", {"street": "a"}, "Address(street='a', zip=None)"),
    SignatureRow("x", {"x": [1]}, "x=[1]"),
    SignatureRow("x: int = 3", {}, "x=3"),
    SignatureRow("x: int = None", {}, "x=None"),
    SignatureRow("x: Path = Path('.')", {}, "x=PosixPath('.')"),
    SignatureRow("x: int = Field(3, ge=1)", {}, "x=3"),
    SignatureRow("x: float = float('inf')", {}, "x=inf"),
    SignatureRow("x, /, y: int = 2", {"x": 1}, "1, y=2", whole=True),
    SignatureRow("*, x: int", {"x": 1}, "x=1", whole=True),
    SignatureRow("x: int, *more: float", {"x": 1, "more": [2]}, "1, 2.0", whole=True),
    SignatureRow("x: int, **rest: int", {"x": 1, "y": 2}, "x=1, y=2", whole=True),
    SignatureRow("**keys: Unpack[Options]", {"depth": 1}, "depth=1", whole=True),
]  # fmt: skip


@dataclass(frozen=True)
class ResultRow:
    """A returned value, by its source, and what the model gets of it."""

    value: str
    content: str

    def made(self) -> Any:
        return eval(self.value, namespace())

    def text(self) -> str:
        return "\n".join(
            block.text if block.type == "text" else f"[{block.mime_type}]" for block in to_content(self.made())
        )


RESULTS = [
    ResultRow("'done'", "done"),
    ResultRow("3", "3"),
    ResultRow("True", "true"),
    ResultRow("float('nan')", "NaN"),
    ResultRow("{'a': [1, None], 'b': float('nan')}", '{"a": [1, null], "b": null}'),
    ResultRow("{'when': date(2024, 5, 1), 'who': {'b', 'a'}}", '{"when": "2024-05-01", "who": ["a", "b"]}'),
    ResultRow("[np.int64(1), np.float32(0.5), pd.NA, pd.Timestamp('2024-05-01')]",
              '[1, 0.5, null, "2024-05-01T00:00:00"]'),
    ResultRow("{'a': b'text', 'b': b'\\xff\\x00'}", '{"a": "text", "b": "2 bytes, base64: /wA="}'),
    ResultRow("Address(street='a')", '{"street": "a", "zip": null}'),
    ResultRow("Point(1, 2)", '{"x": 1, "y": 2}'),
    ResultRow("Span(1)", '{"start": 1, "end": 10}'),
    ResultRow("Color.RED", "red"),
    ResultRow("Path('a.csv')", "a.csv"),
    ResultRow("pd.DataFrame({'n': [1, 2], 'price': [0.5, None]})",
              "DataFrame: 2 rows x 2 columns\nColumns: n int64, price float64 (1 missing)\n\n"
              "|  | n | price |\n| --- | --- | --- |\n| 0 | 1 | 0.5 |\n| 1 | 2 | nan |"),
    ResultRow("pd.Series([1.5, 2.5], name='price')",
              "Series price: 2 values, float64\n\n|  | price |\n| --- | --- |\n| 0 | 1.5 |\n| 1 | 2.5 |"),
    ResultRow("np.arange(4.0).reshape(2, 2)",
              "ndarray: shape (2, 2), float64; min 0, mean 1.5, max 3\n[[0. 1.]\n [2. 3.]]"),
    ResultRow("Figure()", "[image/png]"),
    ResultRow("Image.new('RGB', (2, 2))", "[image/png]"),
    ResultRow("['Sales', pd.DataFrame({'n': [1]}), Figure()]",
              "Sales\n\nDataFrame: 1 row x 1 column\nColumns: n int64\n\n"
              "|  | n |\n| --- | --- |\n| 0 | 1 |\n[image/png]"),
]  # fmt: skip


def _code(text: str) -> str:
    lines = [line.replace("|", "\\|") for line in text.split("\n")]
    return "<br>".join(f"`{line}`" if line.strip() else "" for line in lines)


def signature_table() -> str:
    lines = ["| `def f(...)` | schema | a model sends | the function gets |", "| --- | --- | --- | --- |"]
    for row in SIGNATURES:
        cells = (row.parameters, json.dumps(row.schema()), json.dumps(row.arguments), row.received)
        lines.append(f"| {' | '.join(map(_code, cells))} |")
    return "\n".join(lines)


def result_table() -> str:
    lines = ["| a tool returns | the model gets |", "| --- | --- |"]
    lines += [f"| {_code(row.value)} | {_code(row.content)} |" for row in RESULTS]
    return "\n".join(lines)


def page_with_tables(page: str) -> str:
    """`page` with what stands between its markers made anew."""
    for name, table in (("signatures", signature_table()), ("results", result_table())):
        start, end = f"<!-- {name}: made by tests/agent/tables.py -->", f"<!-- end of {name} -->"
        before, rest = page.split(start)
        _, after = rest.split(end)
        page = f"{before}{start}\n{table}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text("utf-8")), "utf-8")
