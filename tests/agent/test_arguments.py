"""Arguments of tool calls: the rules A1-A6, error texts, hostile input, and pydantic after the coercer."""

from __future__ import annotations

import datetime
import enum
import json
import subprocess
import sys
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import AfterValidator, BaseModel, TypeAdapter

from pi_notebook.agent.arguments import compile_schema, validate_with_pydantic
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.errors import ToolArgumentsError, ToolDefinitionError


def accept(schema: dict[str, Any], arguments: Any) -> dict[str, Any]:
    return compile_schema(schema).validate("t", arguments)


def refuse(schema: dict[str, Any], arguments: Any) -> ToolArgumentsError:
    with pytest.raises(ToolArgumentsError) as caught:
        compile_schema(schema).validate("t", arguments)
    return caught.value


def of(**properties: Any) -> dict[str, Any]:
    """A schema with one required property for each keyword."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def optional(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NUMBER, STRING, INTEGER = {"type": "number"}, {"type": "string"}, {"type": "integer"}


# A1


def test_a1_null_stays_where_the_schema_admits_it() -> None:
    nullable = {"anyOf": [STRING, {"type": "null"}]}
    assert accept(
        of(a=nullable, b={}, c={"type": ["number", "null"]}, d={"enum": [1, None]}), dict.fromkeys("abcd")
    ) == {
        "a": None,
        "b": None,
        "c": None,
        "d": None,
    }


def test_a1_null_of_an_optional_property_means_not_given() -> None:
    schema = optional(s=STRING, n=NUMBER, b={"type": "boolean"}, a={"type": "array"}, o=optional(x=NUMBER))
    assert accept(schema, {"s": None, "n": None, "b": None, "a": None, "o": {"x": None}}) == {"o": {}}


def test_a1_null_of_a_required_property_is_an_error_and_never_a_made_up_value() -> None:
    for kind in ("string", "number", "integer", "boolean", "array", "object"):
        assert refuse(of(v={"type": kind}), {"v": None}).errors == [("v", f"expected {kind}, got null")]


def test_a1_null_inside_a_list_or_as_an_extra_property_is_an_error() -> None:
    assert refuse(of(v={"type": "array", "items": NUMBER}), {"v": [1, None]}).errors == [
        ("v.1", "expected number, got null")
    ]
    error = refuse({"type": "object", "additionalProperties": NUMBER}, {"x": None})
    assert ("x", "expected number, got null") in error.errors


# A2


def test_a2_blank_text_is_an_empty_object() -> None:
    assert accept(optional(a=NUMBER), " \n") == {}


def test_a2_blank_text_for_a_tool_with_required_properties_is_an_error_for_the_model() -> None:
    assert refuse(of(a=NUMBER), "").errors == [("a", "expected number, got nothing: it is required")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"path":"a.t', "it was cut off inside a string, after 12 characters"),
        ('{"path":["a"', "it was cut off before the value was complete, after 12 characters"),
        ("path: a.txt", "expecting value at line 1 column 1"),
        ("{'path':'a'}", "expecting property name enclosed in double quotes at line 1 column 2"),
        ('{"path":NaN}', "NaN is no JSON number"),
        ('{"path":"a"}{"path":"b"}', "expected one JSON object, got 2 in a row: make one call for each"),
    ],
)
def test_a2_text_that_is_no_object_does_not_run_and_says_why(text: str, problem: str) -> None:
    error = refuse(optional(path=STRING), text)
    assert problem in str(error)
    assert [path for path, _ in error.errors] == ["root"]
    assert json.dumps(text) in str(error)


# A3


@pytest.mark.parametrize(
    ("raw", "got"),
    [(None, "null"), ([1], "array [1]"), (5, "integer 5"), (5.5, "number 5.5"), (True, "boolean true")],
)
@pytest.mark.parametrize("schema", [optional(), {}, {"type": "string"}])
def test_a3_arguments_that_are_no_object_are_an_error(raw: Any, got: str, schema: dict[str, Any]) -> None:
    assert refuse(schema, raw).errors == [("root", f"expected a JSON object, got {got}")]


# A4


def test_a4_every_missing_property_is_named_at_its_path() -> None:
    schema = of(a=STRING, b={"enum": ["x", "y"]}, c=of(d=NUMBER, e={}))
    assert refuse(schema, {"c": {}}).errors == [
        ("c.d", "expected number, got nothing: it is required"),
        ("c.e", "expected a value, got nothing: it is required"),
        ("a", "expected string, got nothing: it is required"),
        ("b", 'expected one of "x", "y", got nothing: it is required'),
    ]


# A5


def test_a5_nested_json_sent_as_text_is_decoded_where_a_list_or_object_is_wanted() -> None:
    schema = of(v={"type": "array", "items": INTEGER}, o=of(n=NUMBER))
    assert accept(schema, {"v": '[1, "2"]', "o": ' {"n": "3"} '}) == {"v": [1, 2], "o": {"n": 3}}
    assert accept(schema, json.dumps({"v": "[1]", "o": {"n": 1}})) == {"v": [1], "o": {"n": 1}}


def test_a5_decodes_inside_unions_and_lists() -> None:
    schema = of(v={"type": "array", "items": {"anyOf": [of(n=NUMBER), {"type": "null"}]}})
    assert accept(schema, {"v": ['{"n":1}', None]}) == {"v": [{"n": 1}, None]}


def test_a5_only_after_normal_validation_has_failed() -> None:
    either = {"anyOf": [{"type": "array"}, STRING]}
    assert accept(of(v=either, s=STRING), {"v": "[1]", "s": "[1]"}) == {"v": "[1]", "s": "[1]"}


def test_a5_decodes_once() -> None:
    twice = json.dumps(json.dumps([1]))
    assert refuse(of(v={"type": "array"}), {"v": twice}).errors == [
        ("v", f"expected array, got string {json.dumps(twice)}")
    ]
    inner = refuse(of(v={"type": "array", "items": {"type": "array"}}), {"v": '["[1]"]'})
    assert [path for path, _ in inner.errors] == ["v", "v.0"]


def test_a5_wrong_after_decoding_names_both_places() -> None:
    assert refuse(of(v={"type": "array", "items": NUMBER}), {"v": '["x"]'}).errors == [
        ("v", 'expected array, got string "[\\"x\\"]"'),
        ("v.0", 'expected number, got string "x"'),
    ]


# A6


class Level(enum.IntEnum):
    low = 1
    high = 2


class Address(BaseModel):
    street: str
    number: int


class Parameters(BaseModel):
    day: datetime.date
    level: Level
    zoom: Literal[1, 2, 4] = 1
    address: Address | None = None
    pair: tuple[int, str] = (0, "")
    tags: set[str] = set()
    price: Decimal = Decimal(0)
    flag: bool = False
    ratio: float = 0.0


def pydantic_values(arguments: Any, model: Any = Parameters) -> Any:
    schema = model.json_schema() if isinstance(model, TypeAdapter) else model.model_json_schema()
    return validate_with_pydantic("t", model, compile_schema(schema, for_pydantic=True).validate("t", arguments))


def test_a6_a_function_tool_gets_python_values_after_the_same_coercions() -> None:
    values = pydantic_values(
        {
            "day": "2024-01-31",
            "level": "2",
            "zoom": "4",
            "address": {"street": 5, "number": "7"},
            "pair": ["3", 4],
            "tags": ["a", "a"],
            "price": "1.50",
            "flag": "true",
            "ratio": "0.5",
        }
    )
    assert values == Parameters(
        day=datetime.date(2024, 1, 31),
        level=Level.high,
        zoom=4,
        address=Address(street="5", number=7),
        pair=(3, "4"),
        tags={"a"},
        price=Decimal("1.50"),
        flag=True,
        ratio=0.5,
    )
    assert isinstance(values.level, Level)


def test_a6_a_set_takes_repeated_items_and_a_decimal_takes_number_or_text() -> None:
    day = {"day": "2024-01-31", "level": 1}
    assert pydantic_values({**day, "tags": ["a", "a"], "price": 1.5}).tags == {"a"}
    assert pydantic_values({**day, "price": "0.10"}).price == Decimal("0.10")
    with pytest.raises(ToolArgumentsError, match="price"):
        pydantic_values({**day, "price": "0" * 20_000 + "x"})


def test_a6_what_only_pydantic_would_convert_is_refused_like_in_a_dict_tool() -> None:
    for name, value, wanted in [("flag", "yes", "boolean"), ("zoom", 1.5, "integer"), ("ratio", "x", "number")]:
        with pytest.raises(ToolArgumentsError) as caught:
            pydantic_values({"day": "2024-01-31", "level": 1, name: value})
        dict_error = refuse(of(**{name: {"type": wanted}}), {name: value})
        assert set(dict_error.errors) <= set(caught.value.errors)


@pytest.mark.parametrize("value", ["5", 5, "1706659200"])
def test_a6_a_number_is_no_date(value: Any) -> None:
    with pytest.raises(ToolArgumentsError, match="day: expected text in the format date such as 2024-01-31"):
        pydantic_values({"day": value, "level": 1})


def test_a6_errors_that_only_pydantic_knows_have_the_same_form_and_paths() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    class Item(BaseModel):
        when: datetime.date
        count: Annotated[int, AfterValidator(even)]

    class Batch(BaseModel):
        items: list[Item | str]

    with pytest.raises(ToolArgumentsError) as caught:
        pydantic_values({"items": ["x", {"when": "2024-02-31", "count": 3}]}, Batch)
    assert str(caught.value) == snapshot("""\
Validation failed for tool "t":
  - items.1.when: expected a valid date or datetime, day value is outside expected range, got string "2024-02-31"
  - items.1.count: must be even, got integer 3
  - items.1: expected a valid string, got object {"when": "2024-02-31", "count": 3}

Received arguments:
{
  "items": [
    "x",
    {
      "when": "2024-02-31",
      "count": 3
    }
  ]
}\
""")


def test_a6_a_validator_that_breaks_is_an_error_for_the_model() -> None:
    def broken(value: int) -> int:
        raise KeyError("nope")

    adapter = TypeAdapter(dict[str, Annotated[int, AfterValidator(broken)]])
    with pytest.raises(ToolArgumentsError, match="refused by the tool: KeyError: 'nope'"):
        validate_with_pydantic("t", adapter, {"a": 1})


def test_a6_python_values_share_nothing_with_the_json_form() -> None:
    class Anything(BaseModel):
        value: Any

    arguments = {"value": {"x": []}}
    validate_with_pydantic("t", Anything, arguments).value["x"].append(1)
    assert arguments == {"value": {"x": []}}


# Coercion beyond the rules


def test_integer_enums_take_numbers_sent_as_text_and_list_what_is_allowed() -> None:
    zoom = of(level={"type": "integer", "enum": [1, 2, 4]})
    assert accept(zoom, {"level": "2"}) == {"level": 2}
    assert refuse(zoom, {"level": 3}).errors == [("level", "expected one of 1, 2, 4, got integer 3")]
    assert refuse(zoom, {"level": "3"}).errors == [("level", "expected one of 1, 2, 4, got integer 3")]


def test_references_tuples_and_patterned_properties_are_coerced_too() -> None:
    schema = {
        **of(
            r={"$ref": "#/$defs/n"},
            t={"type": "array", "prefixItems": [NUMBER, STRING]},
            p={"type": "object", "patternProperties": {"^n_": NUMBER}},
        ),
        "$defs": {"n": NUMBER},
    }
    assert accept(schema, {"r": "1", "t": ["2", 3], "p": {"n_a": "4", "s": "5"}}) == {
        "r": 1,
        "t": [2, "3"],
        "p": {"n_a": 4, "s": "5"},
    }


def test_recursive_schemas_are_coerced_at_every_level() -> None:
    tree = {"$ref": "#/$defs/tree"}
    schema = {**of(v=tree), "$defs": {"tree": optional(n=NUMBER, below={"type": "array", "items": tree})}}
    assert accept(schema, {"v": {"n": "1", "below": [{"n": "2"}]}}) == {"v": {"n": 1, "below": [{"n": 2}]}}
    assert refuse(schema, {"v": {"below": [{"n": "x"}]}}).errors == [("v.below.0.n", 'expected number, got string "x"')]


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.0, "5"), (1e21, "1e+21"), (1e-7, "1e-7"), (1.5e-7, "1.5e-7"), (1e-5, "0.00001"), (1.25e-5, "0.0000125"),
     (1e16, "10000000000000000"), (-0.5, "-0.5"), (12345678901234567890, "12345678901234567890"), (True, "true")],
)  # fmt: skip
def test_numbers_become_text_as_javascript_prints_them(value: Any, text: str) -> None:
    assert accept(of(v=STRING), {"v": value}) == {"v": text}


@pytest.mark.parametrize(
    ("text", "number"),
    [(" 7 ", 7), ("1e3", 1000), ("0x10", 16), ("0b11", 3), ("+5", 5), ("5.", 5), (".5", 0.5), ("\u00a07\ufeff", 7),
     ("12345678901234567890", 12345678901234567890)],
)  # fmt: skip
def test_text_becomes_a_number_as_javascript_reads_it(text: str, number: float) -> None:
    result = accept(of(v=NUMBER), {"v": text})["v"]
    assert (result, type(result)) == (number, type(number))


@pytest.mark.parametrize("text", ["", " ", "abc", "Infinity", "NaN", "1_000", "1e400", "٣", "0x", "--1", "1 2"])
def test_other_text_is_no_number(text: str) -> None:
    assert refuse(of(v=NUMBER), {"v": text}).errors == [
        ("v", f"expected number, got string {json.dumps(text, ensure_ascii=False)}")
    ]


# The text for the model


def test_error_text_names_paths_expectations_and_what_was_received() -> None:
    schema = {
        "type": "object",
        "properties": {"path": STRING, "count": {"type": "integer", "minimum": 1}, "mode": {"enum": ["fast", "slow"]}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert str(refuse(schema, {"count": 0, "mode": "quick", "extra": "日本"})) == snapshot("""\
Validation failed for tool "t":
  - count: expected a number >= 1, got integer 0
  - mode: expected one of "fast", "slow", got string "quick"
  - path: expected string, got nothing: it is required
  - root: unknown property "extra"; allowed: "path", "count", "mode"

Received arguments:
{
  "count": 0,
  "mode": "quick",
  "extra": "日本"
}\
""")


WORDS = [
    ({"minLength": 2}, "a", 'expected at least 2 characters, got 1: "a"'),
    ({"maxLength": 1}, "ab", 'expected at most 1 character, got 2: "ab"'),
    ({"pattern": "^[a-z]+$"}, "A", 'expected text matching "^[a-z]+$", got string "A"'),
    ({"format": "email"}, "x", 'expected text in the format email such as name@example.com, got string "x"'),
    ({"maximum": 5}, 6, "expected a number <= 5, got integer 6"),
    ({"exclusiveMinimum": 5}, 5, "expected a number > 5, got integer 5"),
    ({"exclusiveMaximum": 5}, 5, "expected a number < 5, got integer 5"),
    ({"multipleOf": 2}, 3, "expected a multiple of 2, got integer 3"),
    ({"const": "x"}, "y", 'expected "x" and nothing else, got string "y"'),
    ({"minItems": 1}, [], "expected at least 1 item, got 0: []"),
    ({"maxItems": 1}, [1, 2], "expected at most 1 item, got 2: [1, 2]"),
    ({"uniqueItems": True}, [1, 1], "expected items that all differ, got array [1, 1]"),
    ({"contains": NUMBER}, [""],
     'expected at least 1 of the items to fit {"type": "number"}, and 0 do, got array [""]'),
    ({"minProperties": 1}, {}, "expected at least 1 property, got 0: {}"),
    ({"maxProperties": 0}, {"a": 1}, 'expected at most 0 properties, got 1: {"a": 1}'),
    ({"not": STRING}, "x", 'expected a value that does not fit {"type": "string"}, got string "x"'),
    (False, 1, "expected nothing here, got integer 1"),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, 'expected "b" too, because "a" is given'),
    (
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        'the property name "ab" does not do: expected at most 1 character, got 2: "ab"',
    ),
    (
        {"if": STRING, "then": {"minLength": 2}},
        "a",
        'expected what the schema asks of a value that fits {"type": "string"}, got string "a"',
    ),
    (
        {"oneOf": [NUMBER, INTEGER]},
        5,
        "expected a value that fits exactly one of 2 alternatives (number, integer), several fit: got integer 5",
    ),
    ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1},
     'expected no properties beyond those of the schema, got object {"b": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "text"), WORDS, ids=[text[:40] for _, _, text in WORDS])
def test_every_keyword_has_words_of_its_own(schema: Any, value: Any, text: str) -> None:
    assert ("v", text) in refuse(of(v=schema), {"v": value}).errors


def test_branches_of_a_union_are_named_with_their_own_paths() -> None:
    schema = of(v={"anyOf": [of(k=NUMBER), STRING]})
    assert refuse(schema, {"v": {"k": "x"}}).errors == [
        ("v.k", 'expected number, got string "x"'),
        ("v", 'expected string, got object {"k": "x"}'),
        ("v", 'expected a value that fits one of 2 alternatives (object, string), got object {"k": "x"}'),
    ]


def test_paths_are_dotted_also_where_a_key_holds_a_slash_or_a_line_break() -> None:
    schema = optional(**{"a/b": NUMBER, "c~d": NUMBER, "x\ny": NUMBER})
    error = refuse(schema, {"a/b": "p", "c~d": "q", "x\ny": "r"})
    assert [path for path, _ in error.errors] == ["a.b", "c~d", "x\\ny"]


def test_long_arguments_are_cut_and_their_size_is_named() -> None:
    error = refuse(of(n=NUMBER), {"n": "x" * 100_000})
    assert len(str(error)) < 6_000
    assert "(cut; 100013 characters in all)" in str(error)
    assert "... (100002 characters)" in error.errors[0][1]


def test_a_flood_of_errors_is_cut_and_counted() -> None:
    error = refuse(of(v={"type": "array", "items": NUMBER}), {"v": ["x"] * 500})
    assert len(error.errors) == 61
    assert error.errors[-1] == ("root", "and 440 or more errors beyond these")


# Hostile input


def test_input_is_never_changed_and_nothing_is_shared_with_it() -> None:
    raw = {"v": ["1"], "free": {"x": []}}
    result = accept(optional(v={"type": "array", "items": NUMBER}), raw)
    result["free"]["x"].append(1)
    assert raw == {"v": ["1"], "free": {"x": []}}


def test_deep_nesting_is_an_error() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert refuse({}, {"v": deep}).errors == [
        ("root", "expected a JSON object, got one nested more than 100 levels deep")
    ]


def test_a_recursive_schema_cannot_be_made_to_work_for_ever() -> None:
    def branch(name: str) -> dict[str, Any]:
        return of(below={"$ref": "#/$defs/t"}, **{name: NUMBER})

    schema = {**of(v={"$ref": "#/$defs/t"}), "$defs": {"t": {"anyOf": [branch("a"), branch("b"), branch("c")]}}}
    value: Any = {}
    for _ in range(90):
        value = {"below": value, "a": "1", "b": "1", "c": "1"}
    assert refuse(schema, {"v": value}).errors[0][0] == "root"


def test_a_pattern_cannot_stall_the_process() -> None:
    refuse(of(v={"type": "string", "pattern": "^(a+)+$"}), {"v": "a" * 50_000 + "!"})


def test_patterns_mean_what_they_mean_in_javascript() -> None:
    assert accept(of(v={"pattern": r"^\d+$"}), {"v": "12"})
    assert refuse(of(v={"pattern": r"^\d+$"}), {"v": "12\n"})
    assert refuse(of(v={"pattern": r"^[\d.]+$"}), {"v": "١"})
    assert accept(of(v={"pattern": r"^(?<word>\w+)(?=!)"}), {"v": "x!"})
    assert accept(of(v={"pattern": r"^\p{L}+$"}), {"v": "日本"})


def test_objects_of_python_in_the_arguments_are_shown_not_raised() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise OSError

    for value in (object(), Broken(), {(1, 2): 3}, 10**5000):
        assert "Received arguments" in str(refuse(of(v=STRING), {"v": value}))
    assert refuse(of(v=STRING), {"v": object}).errors == [
        ("v", f"expected string, got type {json.dumps(repr(object))}")
    ]


# Definitions


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ([], "must be a JSON Schema object"),
        (of(v=5), "has 5 at properties.v, which is no schema"),
        (of(v={"$ref": "https://example.com/s.json"}), "nothing is fetched: put the definition under $defs"),
        (of(v={"$ref": "#/$defs/none"}), "refers to '#/$defs/none' at properties.v.$ref, which is not there"),
        ({**of(v={"$ref": "#/$defs/a"}), "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "in a circle"),
        (of(v={"pattern": "("}), "pattern at properties.v that is no regular expression"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_where_the_tool_is_defined(schema: Any, text: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        compile_schema(schema)
    assert text in str(caught.value)


def test_a_tool_with_such_a_schema_names_itself() -> None:
    async def execute(*_: Any) -> ToolResult:
        return ToolResult("")

    with pytest.raises(ToolDefinitionError, match=r"^Tool 'look' cannot be used. The schema refers to '#/x' at"):
        Tool("look", "", {"$ref": "#/x"}, execute)


def test_older_drafts_are_understood() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **optional(
            t={"type": "array", "items": [NUMBER, STRING], "additionalItems": False},
            r={"$ref": "#/definitions/n"},
        ),
        "definitions": {"n": INTEGER},
        "dependencies": {"r": ["t"]},
    }
    assert accept(schema, {"t": ["1", 2], "r": "3"}) == {"t": [1, "2"], "r": 3}
    assert refuse(schema, {"r": 1}).errors == [("root", 'expected "t" too, because "r" is given')]
    assert refuse(schema, {"t": [1, "x", 3]}).errors == [("t.2", "expected nothing here, got integer 3")]


def test_a_valid_call_needs_no_jsonschema() -> None:
    code = (
        "import sys; from pi_notebook.agent.arguments import compile_schema; "
        "v = compile_schema({'type': 'object', 'properties': {'a': {'anyOf': [{'type': 'integer'}, {'type': 'null'}]},"
        " 'b': {'$ref': '#/$defs/b'}}, '$defs': {'b': {'enum': [1, 2]}}, 'additionalProperties': False}); "
        "v.validate('t', {'a': '1', 'b': 2}); "
        "print([m for m in ('jsonschema', 'pydantic', 'pydantic_core') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
