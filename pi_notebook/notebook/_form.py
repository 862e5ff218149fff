"""A form for the arguments of a call, made from the tool's JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from ..errors import PiNotebookError
from ._arguments import as_json
from ._style import part
from .markup import visible, visible_html

_LEFT_OUT = "not given"


class FormError(PiNotebookError):
    """A field holds what its type does not allow; the text names the field."""


class Form:
    """One field per property; what has no field of its own type is a text area with JSON.

    A field that nobody touches gives back what was given, to the letter; a property that was not given stays left out
    as long as its field is empty.

    Attributes:
        widgets: The fields.
        lines: The fields, and under each what the schema says about it.
    """

    def __init__(self, schema: Mapping[str, Any], arguments: dict[str, Any]) -> None:
        self._fields: dict[str, tuple[Any, Callable[[Any], Any]]] = {}
        self.lines: list[Any] = []
        self._given = arguments
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        for name in [*properties, *(key for key in arguments if key not in properties)]:
            given = name in arguments
            about = properties.get(name)
            about = about if isinstance(about, Mapping) else {}
            self._fields[name] = _field(name, about, given, arguments.get(name))
            self.lines.append(self._fields[name][0])
            if hint := _hint_html(about):
                self.lines.append(ipywidgets.HTML(hint))
        self.widgets = [field for field, _ in self._fields.values()]
        self._first = {name: field.value for name, (field, _) in self._fields.items()}

    def read(self) -> dict[str, Any]:
        """The arguments as the fields say, in the order in which they were given, new ones after them.

        Raises:
            FormError: A field cannot be read.
        """
        arguments = {}
        for name in dict.fromkeys([*self._given, *self._fields]):
            field, read = self._fields[name]
            if name in self._given and field.value == self._first[name]:
                arguments[name] = self._given[name]
            elif name in self._given or field.value not in ("", None):
                try:
                    arguments[name] = read(field.value)
                except ValueError as error:
                    raise FormError(f"{visible(name)}: {error}") from None
        return arguments


def _hint_html(schema: Mapping[str, Any]) -> str:
    text = schema.get("description")
    return (
        f"<div{part('small', 'muted', 'hint')}>{visible_html(text[:500])}</div>"
        if isinstance(text, str) and text
        else ""
    )


def _left_out(schema: Mapping[str, Any]) -> str:
    """What an empty field stands for."""
    return f"{_LEFT_OUT} (default: {visible(as_json(schema['default'])[:60])})" if "default" in schema else _LEFT_OUT


def _field(name: str, schema: Mapping[str, Any], given: bool, value: Any) -> tuple[Any, Callable[[Any], Any]]:
    kind = schema.get("type")
    label = {"description": visible(name[:60]) + _hidden_in(value)}
    hint = "" if given else _left_out(schema)
    choices = schema.get("enum", [True, False] if kind == "boolean" and not given else None)
    if isinstance(choices, list) and choices and (value in choices or not given):
        options = [(visible(str(choice)[:200]), choice) for choice in choices]
        if given:
            widget = ipywidgets.Dropdown(options=options, value=value, **label)
        else:
            widget = ipywidgets.Dropdown(options=[(hint, None), *options], index=0, **label)
        return _sized(widget), lambda chosen: chosen
    if kind == "boolean" and isinstance(value, bool):
        return _sized(ipywidgets.Checkbox(value=value, indent=False, **label)), bool
    if kind == "string" and (isinstance(value, str) or not given):
        text = value or ""
        area = "\n" in text or len(text) > 80
        widget = (ipywidgets.Textarea if area else ipywidgets.Text)(value=text, placeholder=hint, **label)
        return _sized(widget, text), str
    if kind in ("integer", "number") and (isinstance(value, int | float) or not given):
        widget = ipywidgets.Text(value=as_json(value) if given else "", placeholder=hint, **label)
        return _sized(widget), _whole_number if kind == "integer" else _number
    text = as_json(value, indent=1) if given else ""
    return _sized(ipywidgets.Textarea(value=text, placeholder=hint or "JSON", **label), text), _json


def _hidden_in(value: Any) -> str:
    """A warning for the label, because a text field does not show what is hidden in it."""
    text = value if isinstance(value, str) else ""
    return " ⚠ hidden characters" if visible(text, keep_newlines=True) != text else ""


def _sized(widget: Any, text: str = "") -> Any:
    if isinstance(widget, ipywidgets.Textarea):
        widget.rows = min(12, max(3, text.count("\n") + 1 + len(text) // 100))
    widget.add_class("pi-field")
    return widget


def _whole_number(text: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip()!r} is no whole number") from None


def _number(text: str) -> int | float:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{text.strip()!r} is no number")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is no JSON: {error}") from None
