"""The form for edited arguments."""

from __future__ import annotations

from typing import Any

import pytest

from pi_notebook.notebook._arguments import as_json, change_text
from pi_notebook.notebook._form import Form, FormError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "code": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "dry": {"type": "boolean"},
        "mode": {"enum": ["a", "b", 3]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/$defs/Place"},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
}
ARGUMENTS = {
    "text": "x",
    "code": "a\nb",
    "count": 3,
    "share": 0.5,
    "dry": True,
    "mode": "b",
    "tags": ["p", "q"],
    "place": {"x": 1},
    "either": None,
    "unknown": {"more": [1]},
}


def field(form: Form, name: str) -> Any:
    return next(widget for widget in form.widgets if widget.description == name)


def test_a_form_that_is_not_touched_gives_the_arguments_back() -> None:
    assert Form(SCHEMA, ARGUMENTS).read() == ARGUMENTS


def test_each_kind_has_a_field_of_its_own() -> None:
    kinds = {widget.description: type(widget).__name__ for widget in Form(SCHEMA, ARGUMENTS).widgets}
    assert kinds == {
        "text": "Text",
        "code": "Textarea",
        "count": "Text",
        "share": "Text",
        "dry": "Checkbox",
        "mode": "Dropdown",
        "tags": "Textarea",
        "place": "Textarea",
        "either": "Textarea",
        "unknown": "Textarea",
    }


def test_what_was_not_given_says_so_and_what_stands_for_it() -> None:
    properties = {
        "mode": {"enum": ["a", "b"], "default": "a"},
        "dry": {"type": "boolean", "default": False},
        "plain": {"type": "boolean"},
        "count": {"type": "integer", "default": 10},
    }
    form = Form({"properties": properties}, {})
    assert field(form, "mode").label == 'not given (default: "a")'
    assert field(form, "dry").label == "not given (default: false)"
    assert field(form, "plain").label == "not given"
    assert field(form, "count").placeholder == "not given (default: 10)"
    assert form.read() == {}
    field(form, "dry").value = True
    assert form.read() == {"dry": True}


def test_what_the_schema_says_of_a_field_stands_under_it() -> None:
    properties = {"a": {"type": "string", "description": "A <b>name</b>.\u202e"}, "b": {"description": 5}}
    kinds = [
        (type(line).__name__, line.description or line.value) for line in Form({"properties": properties}, {}).lines
    ]
    assert [kind for kind, _ in kinds] == ["Text", "HTML", "Textarea"]
    assert "A &lt;b&gt;name&lt;/b&gt;." in kinds[1][1] and "U+202E" in kinds[1][1]


def test_what_was_not_given_and_stays_empty_is_left_out() -> None:
    assert Form(SCHEMA, {}).read() == {}


def test_what_was_not_given_can_be_filled_in() -> None:
    form = Form(SCHEMA, {})
    field(form, "text").value = "now"
    field(form, "count").value = " 12 "
    field(form, "dry").value = False
    field(form, "mode").value = 3
    field(form, "tags").value = '["a"]'
    assert form.read() == {"text": "now", "count": 12, "dry": False, "mode": 3, "tags": ["a"]}


def test_a_text_that_was_given_may_be_emptied() -> None:
    form = Form(SCHEMA, {"text": "x"})
    field(form, "text").value = ""
    assert form.read() == {"text": ""}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("count", "3.5", "count: '3.5' is no whole number"),
        ("share", "half", "share: 'half' is no number"),
        ("share", "true", "share: 'true' is no number"),
        ("tags", "[1,", "tags: this is no JSON: Expecting value: line 1 column 4 (char 3)"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, value: str, error: str) -> None:
    form = Form(SCHEMA, ARGUMENTS)
    field(form, name).value = value
    with pytest.raises(FormError) as caught:
        form.read()
    assert str(caught.value) == error


def test_a_value_that_does_not_fit_its_schema_can_still_be_edited() -> None:
    arguments = {"text": 5, "count": "many", "mode": "z", "dry": "yes"}
    assert Form(SCHEMA, arguments).read() == arguments


def test_hidden_characters_in_a_field_are_told_of() -> None:
    (widget,) = Form({}, {"a": "x"}).widgets
    assert widget.description == "a"
    (widget,) = Form({}, {"a": "x\u202ey"}).widgets
    assert widget.description == "a ⚠ hidden characters"


def test_what_nobody_touched_comes_back_as_it_was_and_in_its_order() -> None:
    arguments = {"z": 123456789012345678901234567890, "count": 1e20, "y": 1e20, "x": None, "a": {"q": 1, "b": [1.0]}}
    properties = {"a": {"type": "object"}, "count": {"type": "integer"}, "x": {}, "y": {"type": "number"}}
    read = Form({"properties": properties}, arguments).read()
    assert as_json(read) == as_json(arguments)


def test_one_changed_field_changes_nothing_else() -> None:
    form = Form(SCHEMA, ARGUMENTS)
    field(form, "count").value = "4"
    assert list(form.read().items()) == list({**ARGUMENTS, "count": 4}.items())


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({"a": 1, "b": {"p": 1, "q": 2}}, {"b": {"q": 2, "p": 1}, "a": 1}, ""),
        ({"a": 1}, {"a": True}, "- a: 1\n+ a: true"),
        ({"a": 1, "b": "x"}, {"b": "y", "new": None, "a": 1}, '- b: "x"\n+ b: "y"\n+ new: null'),
        ({"a": 1, "b": 2}, {"b": 2}, "- a: 1"),
        ({"code": "one\ntwo\nthree"}, {"code": "one\n2\nthree"}, "  code:\n-     two\n+     2"),
        ({"a": "@@ x\ny"}, {"a": "@@ z\ny"}, "  a:\n-     @@ x\n+     @@ z"),
        ({"a": "x"}, {"a": "x\u202e"}, '- a: "x"\n+ a: "x[U+202E]"'),
        ({}, {"a": "x\ny"}, "  a:\n+     x\n+     y"),
    ],
)
def test_a_change_is_told_argument_by_argument(before: Any, after: Any, text: str) -> None:
    assert change_text(before, after) == text
