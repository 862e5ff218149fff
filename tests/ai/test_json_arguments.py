"""The JSON text of arguments: strict for what runs, forgiving for what is shown."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.json_arguments import (
    InvalidArgumentsError,
    call_arguments,
    parse_arguments,
    partial_arguments,
    without_lone_surrogates,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=15,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)


@pytest.mark.parametrize("text", ["", " ", "\r\n\t "])
def test_blank_text_is_one_call_without_arguments(text: str) -> None:
    assert parse_arguments(text) == [{}]
    assert call_arguments(text) == [{}]
    assert partial_arguments(text) == {}


@given(st.lists(objects, min_size=1, max_size=4), st.sampled_from(["", " ", "\n"]))
def test_whole_objects_in_a_row_are_several_calls(values: list[Any], between: str) -> None:
    text = between.join(json.dumps(value) for value in values)
    assert parse_arguments(text) == values
    assert call_arguments(text) == values


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), ("42", 42), ("[1,2]", [1, 2]), ('"x"', "x"), ("true", True)]
)
def test_other_json_values_are_kept_but_are_no_arguments(text: str, value: Any) -> None:
    assert call_arguments(text) == [value]
    with pytest.raises(InvalidArgumentsError, match="where a JSON object is expected"):
        parse_arguments(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":"b', 'it was cut off inside a string, after 7 characters (it ends with "{\\"a\\":\\"b")'),
        ('{"a":[1,', 'it was cut off before the value was complete, after 8 characters (it ends with "{\\"a\\":[1,")'),
        ('{"a":1}}', 'expecting value at line 1 column 8 (near "{\\"a\\":1}}")'),
        ("{a:1}", 'expecting property name enclosed in double quotes at line 1 column 2 (near "{a:1}")'),
        ('{"a":Infinity}', "Infinity is no JSON number"),
        ('{"a":1e999}', "the number 1e999 is too large"),
        ('{"a":' + "1" * 5000 + "}", "a number of 5000 digits is too large"),
        ('{"a":"\\u12"}', 'invalid \\uXXXX escape at line 1 column 8 (near "{\\"a\\":\\"\\\\u12\\"}")'),
        ("[" * 100_000, "it is nested more than 100 levels deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "it is nested more than 100 levels deep"),
        ('{"a":1}[2]', "it holds a list where a JSON object is expected"),
    ],
)  # fmt: skip
def test_anything_else_is_kept_as_text_with_the_reason(text: str, reason: str) -> None:
    assert call_arguments(text) == [text]
    with pytest.raises(InvalidArgumentsError) as caught:
        parse_arguments(text)
    assert str(caught.value) == reason


def test_raw_control_characters_and_unknown_escapes_are_read_as_meant() -> None:
    assert parse_arguments('{"path":"a\nb\\qc\\d"}') == [{"path": "a\nb\\qc\\d"}]
    assert parse_arguments('{"path":"C:\\\\q\\n"}') == [{"path": "C:\\q\n"}]
    assert partial_arguments('{"path":"a\nb\\qc') == {"path": "a\nb\\qc"}


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_arguments('\ufeff{"a":1}') == [{"a": 1}]
    assert partial_arguments('\ufeff{"a":1') == {"a": 1}


def test_the_last_of_equal_keys_wins() -> None:
    assert parse_arguments('{"a":1,"a":2}') == [{"a": 2}]


def test_large_integers_stay_exact() -> None:
    assert parse_arguments('{"n":12345678901234567890}') == [{"n": 12345678901234567890}]


def test_lone_surrogates_are_removed_everywhere() -> None:
    assert parse_arguments('{"a\\ud83d":["x\\udc00y",{"b":"\\ud83d\\ude00"}]}') == [{"a": ["xy", {"b": "😀"}]}]
    assert parse_arguments('{"a":"x\ud83d"}') == [{"a": "x"}]
    assert call_arguments("no json \ud83d") == ["no json "]
    assert partial_arguments('{"a":"\\ud83d"}') == {"a": ""}
    assert without_lone_surrogates("\ud83d\ude00\ud83d") == "😀"


def test_arguments_that_come_as_an_object_are_taken_and_cleaned() -> None:
    assert call_arguments({"a": ["x\ud83d"]}) == [{"a": ["x"]}]
    assert call_arguments(None) == [None]


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    partial_arguments(text)
    for value in call_arguments(text):
        json.dumps(value, ensure_ascii=False).encode()
    try:
        assert all(isinstance(value, dict) for value in parse_arguments(text))
    except InvalidArgumentsError as error:
        str(error).encode()


@given(st.text(alphabet='{}[]":,\\u0dD8aé\ud83d\ude00tfn1-.e \n', max_size=40))
def test_no_damaged_json_raises_anything_else(text: str) -> None:
    partial_arguments(text)
    values = call_arguments(text)
    json.dumps(values, ensure_ascii=False).encode()


@given(json_values)
def test_a_complete_text_is_shown_as_its_value(value: Any) -> None:
    assert partial_arguments(json.dumps(value)) == value
    assert partial_arguments(json.dumps(value, ensure_ascii=False)) == value


@given(objects, st.floats(0, 1))
def test_a_beginning_shows_only_what_has_come(value: dict[str, Any], share: float) -> None:
    text = json.dumps(value)
    shown = partial_arguments(text[: math.floor(len(text) * share)])
    assert is_beginning(shown, value)


def is_beginning(shown: Any, whole: Any) -> bool:
    if isinstance(shown, dict) and isinstance(whole, dict):
        return all(key in whole and is_beginning(item, whole[key]) for key, item in shown.items())
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(map(is_beginning, shown, whole))
    if isinstance(shown, str) and isinstance(whole, str):
        return whole.startswith(shown)
    if is_number(shown) and is_number(whole):  # it may have been cut between two digits
        return True
    return shown is whole


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
