"""Any Python value as JSON that a model can read. Libraries are only looked at if they are loaded already."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

MAX_DEPTH = 40
_MAX_BYTES = 4096
_MAX_ARRAY = 1000


def json_text(value: Any) -> str:
    """The JSON text of `value`: valid JSON whatever is in it (NaN is null), letters as they are."""
    return json.dumps(json_form(value), ensure_ascii=False, allow_nan=False)


class Way(NamedTuple):
    """How to go through a value. `whole`: also the fields that a `repr` leaves out. `above`: what lies above."""

    whole: bool = False
    above: tuple[int, ...] = ()


SHOWN = Way()
WHOLE = Way(whole=True)


def json_form(value: Any, way: Way = SHOWN) -> Any:
    """`value` in dicts, lists, texts, numbers, booleans and None.

    Sets become lists (sorted where that is possible), bytes their text or base64, enums their value, NaN null,
    infinities texts, and what has no JSON form its `str`. Circles and what lies deeper than `MAX_DEPTH` become "...".
    A field that its class keeps out of its `repr` may be a secret and is left out, but for `WHOLE`.
    """
    if value is None or isinstance(value, bool | str):
        return value if type(value) in (bool, str, type(None)) else _of_subclass(value)
    if isinstance(value, enum.Enum):
        return json_form(value.value, way)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes_text(bytes(value))
    if isinstance(value, datetime.date | datetime.time):
        return _missing_or(value, value.isoformat)
    if id(value) in way.above or len(way.above) >= MAX_DEPTH:
        return "..."
    return _of_object(value, way._replace(above=(*way.above, id(value))))


def _of_subclass(value: Any) -> Any:
    return json_form(value.value) if isinstance(value, enum.Enum) else str(value)


def _of_object(value: Any, way: Way) -> Any:
    if isinstance(value, Mapping):
        return {_key(key): json_form(item, way) for key, item in value.items()}
    if isinstance(value, Set):
        items = [json_form(item, way) for item in value]
        return sorted(items, key=lambda item: (str(type(item)), item if isinstance(item, str | int) else str(item)))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: json_form(item, way) for name, item in value._asdict().items()}
    if hasattr(type(value), "model_dump") and hasattr(type(value), "model_fields"):
        return json_form(_model(value, {} if way.whole else _hidden(value)), way)
    if (fields := fields_of(value, whole=way.whole)) is not None:
        return {name: json_form(item, way) for name, item in fields.items()}
    if (found := _of_library(value, way)) is not None:
        return found[0]
    if is_listed(value):
        return [json_form(item, way) for item in value]
    return safe_text(value)


def fields_of(value: Any, *, whole: bool = False) -> dict[str, Any] | None:
    """The fields of a dataclass' or attrs class' object, but for those that its `repr` leaves out (unless `whole`) and
    those that are not set; None for anything else."""
    kind = type(value)
    fields: Any = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else getattr(kind, "__attrs_attrs__", None)
    if fields is None:
        return None
    found = {each.name: getattr(value, each.name) for each in fields if hasattr(value, each.name)}
    if whole:
        return found
    reprs = {each.name: each.repr for each in fields if each.repr}  # attrs: True, or a function that writes the value
    return {name: reprs[name](item) if callable(reprs[name]) else item for name, item in found.items() if name in reprs}


def goes_by_name(kind: type) -> bool:
    """Whether `kind` is an enum that a model picks from by name, as JSON does not have its values (`(255, 0, 0)`)."""
    scalars = (str, int, float, type(None))
    return issubclass(kind, enum.Enum) and not all(isinstance(member.value, scalars) for member in kind)


def is_listed(value: Any) -> bool:
    """Whether `value` is a plain run of items (list, tuple, range, deque, view of a dict) and no text."""
    if isinstance(value, str | bytes | bytearray | memoryview):
        return False
    if isinstance(value, Sequence) or type(value).__name__ in ("deque", "dict_keys", "dict_values", "dict_items"):
        return isinstance(value, Iterable)
    return False


def _model(value: Any, hidden: Mapping[Any, Any]) -> Any:
    """A pydantic model by its own serializers, which may hide secrets; types without one are left as they are."""
    try:
        return value.model_dump(mode="json", by_alias=True, exclude=hidden or None)
    except Exception:
        return value.model_dump(by_alias=True, warnings=False, exclude=hidden or None)


def _hidden(value: Any, depth: int = MAX_DEPTH) -> dict[Any, Any]:
    """What the `repr` of a pydantic model, and of the objects in it, leaves out: pydantic's `exclude`."""
    kind = type(value)
    if getattr(kind, "__pydantic_root_model__", False):
        return _hidden(value.root, depth)
    fields: dict[str, Any] = {**getattr(kind, "model_computed_fields", {}), **getattr(kind, "model_fields", {})}
    items: Mapping[Any, Any] = vars(value) if fields else {}
    if dataclasses.is_dataclass(kind):
        fields, items = {each.name: each for each in dataclasses.fields(kind)}, fields_of(value, whole=True) or {}
    hidden: dict[Any, Any] = {name: True for name, each in fields.items() if not each.repr}
    if isinstance(value, Mapping):
        items = value
    elif is_listed(value):
        items = dict(enumerate(value))
    for name, item in items.items() if depth else ():
        if name not in hidden and (inner := _hidden(item, depth - 1)):
            hidden[name] = inner
    return hidden


def _of_library(value: Any, way: Way) -> tuple[Any] | None:
    """numpy and pandas values in a 1-tuple; None if it is neither."""
    if (numpy := sys.modules.get("numpy")) is not None:
        if isinstance(value, numpy.datetime64 | numpy.timedelta64):
            return (None if numpy.isnat(value) else str(value),)
        if isinstance(value, numpy.generic):
            item = value.item()
            return (safe_text(value) if isinstance(item, numpy.generic) else json_form(item, way),)
        if isinstance(value, numpy.ndarray):
            if value.size <= _MAX_ARRAY:
                return (json_form(value.tolist(), way),)
            return (safe_text(value),)
    if (pandas := sys.modules.get("pandas")) is not None:
        if value is pandas.NA or value is pandas.NaT:
            return (None,)
        if isinstance(value, pandas.DataFrame):
            return (json_form(value.to_dict(orient="records"), way),)
        if isinstance(value, pandas.Series):
            return ({_key(key): json_form(item, way) for key, item in value.items()},)
        if isinstance(value, pandas.Index):
            return (json_form(value.tolist(), way),)
    return None


def _missing_or(value: Any, text: Any) -> Any:
    """pandas.NaT is a datetime that is not equal to itself."""
    return text() if value == value else None


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _key(key: Any) -> str:
    if isinstance(key, str) and not isinstance(key, enum.Enum):
        return str(key)
    form = json_form(key)
    return form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)


def bytes_text(data: bytes) -> str:
    """The text in `data`, or its size and (the beginning of) its base64."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if (text or not data) and all(char.isprintable() or char in "\r\n\t" for char in text):
        return text
    shown = base64.b64encode(data[:_MAX_BYTES]).decode("ascii")
    more = "" if len(data) <= _MAX_BYTES else f"... (the first {_MAX_BYTES:,} bytes)"
    return f"{len(data):,} bytes, base64: {shown}{more}"


def safe_text(value: Any) -> str:
    """`str(value)`, also where that fails; an exception with its type."""
    try:
        return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    except Exception as error:
        return f"<{type(value).__name__} whose text cannot be shown: {type(error).__name__}>"
