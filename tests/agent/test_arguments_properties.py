"""Properties of coercion and validation that hold for every schema and every value."""

from __future__ import annotations

import copy
import enum
import json
from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, create_model

from pi_notebook.agent.arguments import compile_schema, validate_with_pydantic
from pi_notebook.errors import ToolArgumentsError

KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 5.0, 1e21, -2.5]),
    st.sampled_from(["", "5", "5.5", "true", "false", "null", "abc", " 7 ", "0x10", "[1]", '{"a":"1"}', '["x"]']),
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])


def schemas_above(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(below, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(KEYS, below, max_size=3),
            "required": st.lists(KEYS, max_size=2, unique=True),
            "additionalProperties": below | st.booleans(),
            "items": below,
            "prefixItems": several,
            "anyOf": several,
            "oneOf": several,
            "allOf": st.lists(below, min_size=1, max_size=2),
            "not": below,
        },
    )


LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(0, 6),
        "exclusiveMaximum": st.integers(4, 9),
        "multipleOf": st.sampled_from([1, 2, 3]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(1, 4),
        "pattern": st.sampled_from(["^[a-z]+$", "[0-9]"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(1, 2),
        "uniqueItems": st.booleans(),
        "minProperties": st.integers(0, 1),
    },
)
SCHEMAS = st.recursive(LEAVES, schemas_above, max_leaves=8)
OBJECT_SCHEMAS = st.builds(
    lambda properties, rest: {"type": "object", "properties": properties, **rest},
    st.dictionaries(KEYS, SCHEMAS, min_size=1, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={"required": st.lists(KEYS, max_size=2, unique=True), "additionalProperties": SCHEMAS | st.booleans()},
    ),
)
ARGUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)
SLOW = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def outcome(schema: Any, arguments: Any) -> tuple[Any, list[str]]:
    try:
        return compile_schema(schema).validate("t", arguments), []
    except ToolArgumentsError as error:
        assert str(error).startswith('Validation failed for tool "t":\n  - ')
        assert "cannot be checked" not in str(error)
        return None, [path for path, _ in error.errors]


@SLOW
@given(OBJECT_SCHEMAS, ARGUMENTS)
def test_what_is_accepted_is_valid_and_stays_as_it_is(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    before = copy.deepcopy(arguments)
    result, errors = outcome(schema, arguments)
    assert arguments == before and json.dumps(arguments) == json.dumps(before)
    if errors:
        return
    assert Draft202012Validator(schema).is_valid(result)
    assert json.dumps(outcome(schema, result)[0]) == json.dumps(result)


@SLOW
@given(OBJECT_SCHEMAS, ARGUMENTS)
def test_what_is_valid_as_it_comes_is_accepted(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    if Draft202012Validator(schema).is_valid(arguments):
        result, errors = outcome(schema, arguments)
        assert not errors
        assert result == arguments


@SLOW
@given(OBJECT_SCHEMAS, VALUES | st.text())
def test_nothing_but_an_arguments_error_is_raised(schema: dict[str, Any], raw: Any) -> None:
    outcome(schema, raw)


class Size(enum.IntEnum):
    small = 1
    large = 2


class Point(BaseModel):
    x: int
    y: float = 0.0


FIELD_TYPES = [
    int, float, str, bool, list[int], dict[str, float], int | None, str | None, Literal[1, 2, 4], Literal["a", "5"],
    Size, Point, list[Point], tuple[int, str], Point | None, int | str, set[str], Any,
]  # fmt: skip
FIELDS = st.dictionaries(KEYS, st.tuples(st.sampled_from(FIELD_TYPES), st.booleans()), min_size=1, max_size=3)
FIELD_VALUES = VALUES | st.sampled_from([{"x": "1"}, [{"x": 1, "y": "2"}], [1, "x"], ["1", 2], {"x": None}])


@SLOW
@given(FIELDS, st.dictionaries(KEYS, FIELD_VALUES, min_size=1, max_size=3))
def test_function_tools_and_dict_tools_agree(fields: dict[str, Any], arguments: dict[str, Any]) -> None:
    model = create_model("Parameters", **{k: (t, ...) if needed else (t, None) for k, (t, needed) in fields.items()})
    schema = model.model_json_schema()
    result, errors = outcome(schema, arguments)
    validator = compile_schema(schema, for_pydantic=True)
    try:
        checked = validator.validate("t", arguments)
        values = validate_with_pydantic("t", model, checked)
    except ToolArgumentsError as error:
        paths = [path for path, _ in error.errors]
        assert paths == errors or (_has_set(fields) and set(paths) <= set(errors))
        return
    if errors:  # a set takes items that repeat, its schema does not
        assert _has_set(fields)
        return
    assert checked == result
    known = {key: item for key, item in result.items() if key in fields and fields[key][0] not in (set[str], Any)}
    dumped = values.model_dump(mode="json", exclude_unset=True)
    assert {key: dumped[key] for key in known if not _has_defaults(known[key])} == {
        key: item for key, item in known.items() if not _has_defaults(item)
    }


def _has_set(fields: dict[str, Any]) -> bool:
    return any(kind == set[str] for kind, _ in fields.values())


def _has_defaults(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
