"""What a variable is, found out without running any code of its class.

A property, `__repr__`, `__len__` or `__class__` of an unknown object may read a file, ask a server or raise. So only
objects whose exact type is known are looked into, and types are read by `type`'s own descriptors, which a metaclass
cannot replace.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import sys
import types
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ._paths import shown

MAX_PREVIEW = 80
MAX_ITEMS = 12
MAX_DEPTH = 4

_name = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__
_PLAIN = (
    int,
    float,
    complex,
    bool,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    range,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    datetime.date,
    datetime.timedelta,
    datetime.timezone,
    pathlib.PosixPath,
    pathlib.WindowsPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)
_BRACKETS: dict[Any, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    dict: ("{", "}"),
}
_CONTAINERS = (list, tuple, set, frozenset, dict, str, bytes, bytearray)


@dataclass(frozen=True, slots=True)
class Summary:
    """One variable.

    Args:
        type: `list`, `pandas.DataFrame`; the class as it was defined.
        shape: `1000 x 5`, `3 items`; empty where the object has none that is known.
        bytes: Size in memory, of a container without what is in it; None where only its class could tell.
        preview: One line, at most `MAX_PREVIEW` characters.
        detail: Several lines for a closer look; may be empty.
    """

    type: str
    shape: str = ""
    bytes: int | None = None
    preview: str = ""
    detail: str = ""


def summary(value: Any, *, closer: bool = False) -> Summary:
    """What can be said of `value`. `closer` fills in `detail`. Never runs code of an unknown class."""
    kind = type(value)
    name = type_name(kind)
    for module, class_name, describe in _LIBRARY:
        loaded = sys.modules.get(module)
        if loaded is not None and kind is vars(loaded).get(class_name):
            try:
                return describe(value, name, closer)
            except Exception as error:  # a library that changed its mind: say what it is, not what is in it
                return Summary(name, preview=f"({type(error).__name__} while looking at it)")
    preview = text_of(value, MAX_PREVIEW)
    detail = text_of(value, 4_000, items=100) if closer else ""
    if is_one_of(kind, _CONTAINERS):
        noun = "character" if kind is str else "byte" if kind in (bytes, bytearray) else "item"
        length = len(value)
        return Summary(name, f"{length:,} {noun}{'' if length == 1 else 's'}", sys.getsizeof(value), preview, detail)
    if is_one_of(kind, _PLAIN):
        return Summary(name, "", sys.getsizeof(value), preview, detail)
    if kind is types.FunctionType:
        doc = value.__doc__
        return Summary(name, preview=preview, detail=doc[:4_000] if closer and type(doc) is str else "")
    return Summary(name, preview=preview)


def is_one_of(kind: type, kinds: Iterable[type]) -> bool:
    """Whether `kind` is one of these very classes. `in` would run `__eq__`, or `__hash__`, of its metaclass."""
    return any(kind is each for each in kinds)


def type_name(kind: type) -> str:
    """`int`, `pandas.DataFrame`, `MyClass`: without internal modules, from what the class says of itself."""
    name, module = _own_text(_name(kind)).rpartition("<locals>.")[2], _module(kind)
    if type(module) is not str or module in ("builtins", "__main__"):
        return shown(name)
    package = module.partition(".")[0]
    return shown(f"{package}.{name}")


def _own_text(name: str) -> str:
    """A name as `str` itself; Python also lets a subclass be one, with methods of its own."""
    return str.__str__(name)


def text_of(value: Any, limit: int, *, items: int = MAX_ITEMS) -> str:
    """`repr` for objects whose exact type is known, `<type>` for all others; at most `limit` characters, one line."""
    text = "".join(_pieces(value, limit + 1, items, ()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _pieces(value: Any, room: int, items: int, above: tuple[int, ...]) -> list[str]:
    """The text of `value` in pieces, not much more than `room` characters; `above`: ids of what it lies in."""
    kind = type(value)
    if kind is str or kind is bytes or kind is bytearray:
        return [repr(value if len(value) <= room else value[:room])]
    if kind is int and value.bit_length() > 4 * room:
        return [f"<int with {value.bit_length():,} bits>"]
    if is_one_of(kind, _PLAIN) or (kind is datetime.datetime and _known_zone(value)):
        return [repr(value)]
    if is_one_of(kind, _BRACKETS):
        if id(value) in above or len(above) == MAX_DEPTH:
            return ["…"]
        return _container(value, kind, room, items, (*above, id(value)))
    if kind is types.FunctionType:
        return [f"{shown(_own_text(value.__name__))}({', '.join(_parameters(value))})"]
    if kind is types.ModuleType:
        name = vars(value).get("__name__")
        return [f"<module {shown(name) if type(name) is str else '?'}>"]
    if issubclass(kind, type):
        return [f"<class {type_name(value)}>"]
    return [f"<{type_name(kind)}>"]


def _container(value: Any, kind: type, room: int, items: int, above: tuple[int, ...]) -> list[str]:
    first, last = _BRACKETS[kind]
    if not value:
        return [f"{kind.__name__}()" if kind in (set, frozenset) else first + last]
    pieces, used = [], 0
    for number, item in enumerate(list(value.items()) if kind is dict else list(value)):
        if number == items or used > room:
            pieces.append("…")
            break
        if kind is dict:
            key = "".join(_pieces(item[0], room, items, above))
            piece = f"{key}: {''.join(_pieces(item[1], room, items, above))}"
        else:
            piece = "".join(_pieces(item, room, items, above))
        pieces.append(piece)
        used += len(piece) + 2
    inside = ", ".join(pieces)
    if kind is tuple and len(value) == 1:
        inside += ","
    text = first + inside + last
    return [f"frozenset({text})" if kind is frozenset else text]


def _known_zone(value: datetime.datetime) -> bool:
    return value.tzinfo is None or type(value.tzinfo) is datetime.timezone


def _parameters(function: types.FunctionType) -> list[str]:
    """Names of a function's parameters, from its code object: defaults and annotations are anybody's objects."""
    code = function.__code__
    number = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:number])
    if code.co_flags & 0x04:
        names.insert(code.co_argcount, "*" + code.co_varnames[number])
        number += 1
    elif code.co_kwonlyargcount:
        names.insert(code.co_argcount, "*")
    if code.co_flags & 0x08:
        names.append("**" + code.co_varnames[number])
    return names


# ---- libraries ------------------------------------------------------------------------------------
# Called only for exactly the library's own class, so what runs is the library's code. Cells of object columns are
# anybody's objects, and go through `text_of`.


def _frame(frame: Any, name: str, closer: bool) -> Summary:
    rows, columns = frame.shape
    shown_columns = [frame.columns[number] for number in range(min(columns, 60 if closer else MAX_ITEMS))]
    labels = [text_of(label, 40).strip("'") for label in shown_columns]
    more = f", … {columns - len(labels):,} more" if columns > len(labels) else ""
    size = int(frame.memory_usage(index=True, deep=False).sum())
    preview = _short(", ".join(labels) + more)
    if not closer:
        return Summary(name, f"{rows:,} x {columns:,}", size, preview)
    lines = [
        f"{label}: {frame.dtypes.iloc[number]}, {int(frame.iloc[:, number].isna().sum()):,} missing"
        for number, label in enumerate(labels)
    ]
    lines += [f"first {min(rows, 5)} rows:"] if rows else []
    for row in range(min(rows, 5)):
        cells = [_cell(frame.iloc[row, number]) for number in range(len(labels))]
        lines.append(f"{text_of(frame.index[row], 30)}: {', '.join(cells)}")
    return Summary(name, f"{rows:,} x {columns:,}", size, preview, "\n".join(lines) + more)


def _series(series: Any, name: str, closer: bool) -> Summary:
    number = len(series)
    values = ", ".join(_cell(series.iloc[at]) for at in range(min(number, 100 if closer else 5)))
    text = f"{series.dtype}: {values}{', …' if number > 5 else ''}"
    size = int(series.memory_usage(index=True, deep=False))
    label = series.name
    detail = f"name {text_of(label, 60)}\n{text[:4_000]}" if closer else ""
    return Summary(name, f"{number:,} items", size, _short(text), detail)


def _array(array: Any, name: str, closer: bool) -> Summary:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    number = min(array.size, 200 if closer else 5)
    values = ", ".join(_cell(flat[at]) for at in range(number))
    text = f"{array.dtype}: {values}{', …' if array.size > number else ''}"
    shape = " x ".join(f"{side:,}" for side in array.shape) or "scalar"
    return Summary(name, shape, int(array.nbytes), _short(text), text[:4_000] if closer else "")


def _polars_frame(frame: Any, name: str, closer: bool) -> Summary:
    rows, columns = frame.shape
    labels = [f"{label}: {kind}" for label, kind in list(frame.schema.items())[: 60 if closer else MAX_ITEMS]]
    preview = _short(", ".join(shown(label) for label in labels))
    detail = "\n".join(shown(label) for label in labels) if closer else ""
    return Summary(name, f"{rows:,} x {columns:,}", int(frame.estimated_size()), preview, detail)


def _tensor(tensor: Any, name: str, closer: bool) -> Summary:
    shape = " x ".join(f"{side:,}" for side in tensor.shape) or "scalar"
    size = int(tensor.nelement() * tensor.element_size())
    return Summary(name, shape, size, f"{tensor.dtype} on {tensor.device}")


def _cell(value: Any) -> str:
    """A cell of a table: numpy's own scalars as Python values."""
    numpy = sys.modules.get("numpy")
    kind = type(value)
    if numpy is not None and issubclass(kind, numpy.generic) and _module(kind) == "numpy":
        value = value.item()
    pandas = sys.modules.get("pandas")
    if pandas is not None and is_one_of(kind, (pandas.Timestamp, pandas.Timedelta)):
        return str(value.isoformat())
    if pandas is not None and (value is pandas.NaT or value is pandas.NA):
        return "missing"
    return text_of(value, 40)


def _short(text: str) -> str:
    return text if len(text) <= MAX_PREVIEW else text[: MAX_PREVIEW - 1] + "…"


_LIBRARY: tuple[tuple[str, str, Callable[[Any, str, bool], Summary]], ...] = (
    ("pandas", "DataFrame", _frame),
    ("pandas", "Series", _series),
    ("numpy", "ndarray", _array),
    ("polars", "DataFrame", _polars_frame),
    ("torch", "Tensor", _tensor),
)
