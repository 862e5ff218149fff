"""A tool's schema in the form each provider takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, create_model

from pi_notebook.ai.schemas import (
    anthropic_schema,
    anthropic_strict_schema,
    google_schema,
    openai_schema,
    strict_schema,
)
from pi_notebook.errors import ModelError


@dataclass
class Spec:
    schema: dict[str, Any]
    name: str = "f"
    description: str = "does it"
    constrained_sampling: Literal["prefer", "require"] | None = None


class Addr(BaseModel):
    street: str = Field(description="Street and number")
    zip: int | None = None


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Level(IntEnum):
    low = 1
    high = 4


def spec(**parameters: Any) -> Spec:
    fields = {name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in parameters.items()}
    return Spec(create_model("Parameters", **fields).model_json_schema())


def keywords(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(keywords, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    inside = [keywords(child) for key, child in schema.items() if key != "properties"]
    inside += [keywords(child) for child in schema.get("properties", {}).values()]
    return set(schema).union(*inside)


REFUSED_BY_GEMINI = {"$defs", "$ref", "additionalProperties", "const", "$schema"}


def test_gemini_gets_references_written_out_and_constants_as_enums() -> None:
    schema = google_schema(spec(a=Addr, tags=dict[str, str], mode=Literal["x"]))
    assert not keywords(schema) & REFUSED_BY_GEMINI
    assert not any(f'"{name}"' in json.dumps(schema) for name in REFUSED_BY_GEMINI)
    assert schema["properties"]["a"]["properties"]["street"] == {
        "description": "Street and number",
        "title": "Street",
        "type": "string",
    }
    assert schema["properties"]["mode"] == {"title": "Mode", "type": "string", "enum": ["x"]}
    assert schema["properties"]["tags"] == {
        "title": "Tags",
        "type": "object",
        "description": 'Keys are free; each value: {"type":"string"}.',
    }


def test_description_beside_a_reference_wins() -> None:
    schema = google_schema(spec(home=(Addr, Field(description="Where they live"))))
    assert schema["properties"]["home"]["description"] == "Where they live"


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"node": Node}, "node.children[]"),
        ({"nodes": list[Node]}, "nodes[].children[]"),
        ({"by_name": dict[str, Node]}, "by_name{}.children[]"),
    ],
)
def test_recursive_model_is_refused_for_gemini_with_tool_and_path(parameters: Any, path: str) -> None:
    with pytest.raises(ModelError) as caught:
        google_schema(spec(**parameters))
    assert str(caught.value) == (
        f"Tool 'f' cannot be sent to Google: parameter {path}: it refers to itself (#/$defs/Node), "
        "which Gemini cannot express; limit its depth."
    )


def test_recursion_through_the_top_is_refused() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}}
    with pytest.raises(ModelError, match=r"parameter left: it refers to itself \(#\)"):
        google_schema(Spec(tree))


def test_recursion_through_all_of_is_refused() -> None:
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}
    with pytest.raises(ModelError, match="refers to itself"):
        google_schema(Spec(loop))


def test_reference_to_nowhere_is_refused() -> None:
    with pytest.raises(ModelError, match=r"parameter x: its reference 'other\.json' leads to no schema"):
        google_schema(Spec({"type": "object", "properties": {"x": {"$ref": "other.json"}}}))


def test_references_that_multiply_are_refused() -> None:
    layers = {
        f"L{i}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/L{i + 1}"} for k in "ab"}} for i in range(30)
    }
    layers["L30"] = {"type": "string"}
    with pytest.raises(ModelError, match="more than 5000 parts"):
        google_schema(Spec({"$ref": "#/$defs/L0", "$defs": layers}))


@pytest.mark.parametrize("kind", [Literal[1, 2, 4], Level])
def test_integer_enum_becomes_words_for_gemini_and_stays_for_others(kind: Any) -> None:
    tool = spec(level=(kind, Field(description="How close")))
    level = google_schema(tool)["properties"]["level"]
    values = [1, 2, 4] if kind is not Level else [1, 4]
    assert level["type"] == "integer"
    assert level["description"] == f"How close. One of: {', '.join(map(str, values))}."
    assert "enum" not in level
    assert values in [part.get("enum") for part in _all_parts(anthropic_schema(tool))]
    assert openai_schema(tool) is tool.schema


def _all_parts(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [part for item in schema for part in _all_parts(item)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(part for item in schema.values() for part in _all_parts(item))]


def test_integer_constant_becomes_words_for_gemini() -> None:
    assert google_schema(spec(version=Literal[2]))["properties"]["version"] == {
        "title": "Version",
        "type": "integer",
        "description": "Must be 2.",
    }


def test_text_or_null_enum_keeps_its_values() -> None:
    tool = Spec({"type": "object", "properties": {"u": {"type": ["string", "null"], "enum": ["a", "b", None]}}})
    assert google_schema(tool)["properties"]["u"] == {
        "anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]
    }


def test_discriminated_union_becomes_any_of() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    schema = google_schema(spec(pet=(Cat | Dog, Field(discriminator="kind"))))
    assert not keywords(schema) & {*REFUSED_BY_GEMINI, "oneOf", "discriminator"}
    kinds = [part["properties"]["kind"]["enum"] for part in schema["properties"]["pet"]["anyOf"]]
    assert kinds == [["cat"], ["dog"]]


def test_all_of_is_merged_and_a_contradiction_refused() -> None:
    parts = [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]
    merged = google_schema(Spec({"type": "object", "properties": {"x": {"allOf": parts}}}))
    assert merged["properties"]["x"] == {
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "string"}},
        "required": ["a", "b"],
    }
    with pytest.raises(ModelError, match="parameter x: the parts of its allOf disagree about type"):
        google_schema(
            Spec({"type": "object", "properties": {"x": {"allOf": [{"type": "string"}, {"type": "integer"}]}}})
        )


def test_rules_gemini_does_not_know_become_words() -> None:
    schema = google_schema(spec(price=(float, Field(gt=0)), when=(str, Field(json_schema_extra={"format": "uri"}))))
    assert schema["properties"]["price"]["description"] == 'Rules (JSON Schema): {"exclusiveMinimum":0}'
    assert schema["properties"]["when"]["description"] == 'Rules (JSON Schema): {"format":"uri"}'


def test_property_named_like_a_keyword_is_no_keyword() -> None:
    names = {"$ref": {"type": "string"}, "const": {"type": "string"}, "enum": {"type": "integer"}}
    tool = Spec({"type": "object", "properties": names, "required": ["$ref"]})
    assert google_schema(tool) is tool.schema


RECORDED = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": ["a", "b"]},
        "opt": {"type": "number", "minimum": 0, "maximum": 9, "default": 3},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "nested": {"type": "object", "properties": {"k": {"const": "v"}}},
    },
    "required": ["mode"],
    "additionalProperties": False,
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Rich",
}


def test_what_gemini_takes_goes_untouched() -> None:
    tool = Spec(RECORDED)
    assert google_schema(tool) is tool.schema


def test_anthropic_gets_the_whole_schema() -> None:
    assert anthropic_schema(Spec(RECORDED)) == RECORDED
    assert anthropic_schema(Spec({"type": "object"})) == {"type": "object", "properties": {}, "required": []}


def test_anthropic_gets_the_object_behind_a_reference_at_the_top() -> None:
    schema = anthropic_schema(Spec(Node.model_json_schema()))
    assert (schema["type"], schema["required"]) == ("object", ["value"])
    jsonschema.validate({"value": 1, "children": [{"value": 2}]}, schema)


def test_anthropic_refuses_names_and_unions_it_cannot_take() -> None:
    with pytest.raises(ModelError, match="Tool 'f' cannot be sent to Anthropic: parameter 'größe': names are"):
        anthropic_schema(spec(größe=int))
    with pytest.raises(ModelError, match="the parameters as a whole: anyOf is not taken at the top"):
        anthropic_schema(Spec({"anyOf": [{"type": "object"}]}))


def test_parameters_that_are_no_object_are_refused() -> None:
    for form in (openai_schema, anthropic_schema, google_schema):
        with pytest.raises(ModelError, match="they are of type 'string' and must be an object"):
            form(Spec({"type": "string"}))


def test_each_form_is_made_once() -> None:
    tool = spec(a=Addr)
    assert google_schema(tool) is google_schema(tool)
    assert google_schema(Spec(tool.schema)) is google_schema(tool)
    assert google_schema(Spec(dict(tool.schema))) is not google_schema(tool)


def test_forms_leave_the_original_alone() -> None:
    tool = Spec(spec(a=Addr, level=Literal[1, 2], n=(int, 3)).schema, constrained_sampling="prefer")
    before = json.dumps(tool.schema)
    google_schema(tool), anthropic_schema(tool), strict_schema(tool), openai_schema(tool)
    assert json.dumps(tool.schema) == before


def test_strict_form_closes_objects_and_makes_optional_ones_nullable() -> None:
    tool = spec(city=str, unit=(Literal["celsius", "fahrenheit"] | None, None), days=(int, 3), home=(Addr | None, None))
    schema = strict_schema(tool)
    assert schema is not None
    assert schema["required"] == ["city", "unit", "days", "home"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Addr"]["additionalProperties"] is False
    assert schema["$defs"]["Addr"]["required"] == ["street", "zip"]
    assert schema["properties"]["days"] == {"title": "Days", "type": ["integer", "null"], "description": "Default: 3."}
    assert not keywords(schema) & {"default", "oneOf"}


def test_schema_that_is_strict_already_goes_untouched() -> None:
    tool = Spec(
        {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
    )
    assert strict_schema(tool) is tool.schema


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (dict[str, int], "parameter x: an object with free keys has no strict form; name its properties"),
        (dict, "parameter x: an object with free keys has no strict form"),
        (Any, "parameter x: a value of any kind has no strict form"),
        (list, "parameter x[]: a value of any kind has no strict form"),
        (tuple[int, str], r"parameter x: prefixItems (a tuple) has no strict form"),
    ],
)
def test_what_has_no_strict_form_is_refused_only_where_it_is_required(kind: Any, reason: str) -> None:
    tool = spec(x=kind)
    tool.constrained_sampling = "prefer"
    assert strict_schema(tool) is None
    tool.constrained_sampling = "require"
    with pytest.raises(ModelError) as caught:
        strict_schema(tool)
    assert reason in str(caught.value)


def test_strict_form_for_anthropic_closes_objects_and_says_rules_in_words() -> None:
    tool = spec(home=Addr, days=(int, Field(3, ge=1, le=9, description="How many days")))
    tool.constrained_sampling = "require"
    schema = anthropic_strict_schema(tool)
    assert schema is not None
    assert schema["additionalProperties"] is schema["$defs"]["Addr"]["additionalProperties"] is False
    assert schema["required"] == ["home"]
    assert schema["properties"]["days"] == {
        "title": "Days",
        "type": "integer",
        "default": 3,
        "description": 'How many days. Rules (JSON Schema): {"maximum":9,"minimum":1}',
    }


def test_recursive_model_has_no_strict_form_for_anthropic_but_one_for_openai() -> None:
    tool = spec(nodes=list[Node])
    tool.constrained_sampling = "require"
    assert strict_schema(tool) is not None
    with pytest.raises(ModelError) as caught:
        anthropic_strict_schema(tool)
    assert str(caught.value) == (
        "Tool 'f' cannot be sent to Anthropic in strict mode: parameter nodes[].children[]: "
        "it refers to itself (#/$defs/Node); limit its depth."
    )


KINDS = st.recursive(
    st.sampled_from([str, int, float, bool, Addr, Literal["a", "b"], Literal[1, 2], Literal["x"], Level]),
    lambda inner: st.one_of(
        inner.map(lambda k: list[k]), inner.map(lambda k: k | None), inner.map(lambda k: dict[str, k])
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(KINDS, st.booleans()), max_size=4))
def test_any_form_admits_what_the_model_means(parameters: dict[str, tuple[Any, bool]]) -> None:
    fields = {name: (kind, ... if required else None) for name, (kind, required) in parameters.items()}
    tool = Spec(create_model("Parameters", **fields).model_json_schema(), constrained_sampling="prefer")
    google = google_schema(tool)
    assert not keywords(google) & {"$ref", "$defs"}
    for schema in (google, anthropic_schema(tool), strict_schema(tool), anthropic_strict_schema(tool)):
        if schema is not None:
            jsonschema.Draft202012Validator.check_schema(schema)
    values = {name: _example(kind) for name, (kind, _) in parameters.items()}
    closed = anthropic_strict_schema(tool) or tool.schema
    for schema in (tool.schema, google, anthropic_schema(tool), closed):
        jsonschema.validate(values, schema)


def _example(kind: Any) -> Any:
    schema = TypeAdapter(kind).json_schema()
    for value in (1, "a", "x", True, 1.5, {"street": "s", "zip": 1}, [], {}):
        if jsonschema.Draft202012Validator(schema).is_valid(value):
            return value
    raise AssertionError(kind)
