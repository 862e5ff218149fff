"""Precompiled tests for the common keywords of a plain schema, so that a valid call needs no jsonschema."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from .plain import pattern_test
from .values import has_type, is_multiple, text_length, value_key

if TYPE_CHECKING:
    from .coercion import Node, Work

Test: TypeAlias = Callable[[Any, "Work"], bool]

DECIDED_FAST = frozenset((
    "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "enum", "exclusiveMaximum",
    "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
    "minLength", "minProperties", "minimum", "multipleOf", "oneOf", "pattern", "prefixItems", "properties",
    "required", "type",
))  # fmt: skip


def tests_of(node: Node) -> list[Test]:
    """All of them true: surely valid. One false: invalid, unless the document has keywords beyond `DECIDED_FAST`."""
    if isinstance(node.schema, bool):
        return [] if node.schema else [lambda value, work: False]
    keywords = node.schema
    tests = [*_combining(node), *_types(node.types)]
    if "enum" in keywords or "const" in keywords:
        tests += _choices(node, keywords)
    tests += _numbers(keywords)
    tests += _strings(node, keywords)
    tests += _arrays(node, keywords)
    tests += _objects(node, keywords)
    return tests


def _combining(node: Node) -> list[Test]:
    tests: list[Test] = []
    if (target := node.target) is not None:

        def fits_target(value: Any, work: Work) -> bool:
            work.follow()
            return target.surely_valid(value, work)

        tests.append(fits_target)
    for part in node.all_of:
        tests.append(part.surely_valid)
    keywords = node.schema if isinstance(node.schema, dict) else {}
    branches = iter(node.unions)
    if keywords.get("anyOf"):
        any_of = next(branches)
        tests.append(lambda value, work: any(part.surely_valid(value, work) for part in any_of))
    if keywords.get("oneOf"):
        one_of = next(branches)
        document = node.document

        def fits_one(value: Any, work: Work) -> bool:
            return document.exact and sum(part.surely_valid(value, work) for part in one_of) == 1

        tests.append(fits_one)
    return tests


def _types(types: tuple[str, ...]) -> list[Test]:
    if not types:
        return []
    if types == ("string",):
        return [lambda value, work: isinstance(value, str)]
    if types == ("object",):
        return [lambda value, work: isinstance(value, dict)]
    if len(types) == 1:
        (name,) = types
        return [lambda value, work: has_type(value, name)]
    return [lambda value, work: any(has_type(value, name) for name in types)]


def _choices(node: Node, keywords: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    for choices in (keywords.get("enum"), [keywords["const"]] if "const" in keywords else None):
        if choices is None:
            continue
        keys = {value_key(choice) for choice in choices}
        if None in keys:
            node.document.exact = False  # lists and objects are left to jsonschema
            keys.discard(None)
        allowed = frozenset(keys)
        tests.append(lambda value, work, allowed=allowed: value_key(value) in allowed)  # type: ignore[misc]
    return tests


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(keywords: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if (low := keywords.get("minimum")) is not None:
        tests.append(lambda value, work: not _is_number(value) or value >= low)
    if (high := keywords.get("maximum")) is not None:
        tests.append(lambda value, work: not _is_number(value) or value <= high)
    if (above := keywords.get("exclusiveMinimum")) is not None:
        tests.append(lambda value, work: not _is_number(value) or value > above)
    if (below := keywords.get("exclusiveMaximum")) is not None:
        tests.append(lambda value, work: not _is_number(value) or value < below)
    if (of := keywords.get("multipleOf")) is not None:
        tests.append(lambda value, work: not _is_number(value) or is_multiple(value, of))
    return tests


def _strings(node: Node, keywords: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if (least := keywords.get("minLength")) is not None:
        tests.append(lambda value, work: not isinstance(value, str) or text_length(value) >= least)
    if (most := keywords.get("maxLength")) is not None:
        tests.append(lambda value, work: not isinstance(value, str) or text_length(value) <= most)
    if (pattern := keywords.get("pattern")) is not None:
        matches = pattern_test(pattern)
        tests.append(lambda value, work: not isinstance(value, str) or matches(value))
    is_format = node.document.formats.get(keywords.get("format", ""))
    if is_format is not None:
        tests.append(lambda value, work: not isinstance(value, str) or is_format(value))
    return tests


def _arrays(node: Node, keywords: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if (least := keywords.get("minItems")) is not None:
        tests.append(lambda value, work: not isinstance(value, list) or len(value) >= least)
    if (most := keywords.get("maxItems")) is not None:
        tests.append(lambda value, work: not isinstance(value, list) or len(value) <= most)
    if not node.prefix and node.items is None:
        return tests
    prefix, items = node.prefix, node.items

    def items_fit(value: Any, work: Work) -> bool:
        if not isinstance(value, list):
            return True
        if not all(part.surely_valid(item, work) for part, item in zip(prefix, value, strict=False)):
            return False
        return items is None or all(items.surely_valid(item, work) for item in value[len(prefix) :])

    return [*tests, items_fit]


def _objects(node: Node, keywords: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    if (least := keywords.get("minProperties")) is not None:
        tests.append(lambda value, work: not isinstance(value, dict) or len(value) >= least)
    if (most := keywords.get("maxProperties")) is not None:
        tests.append(lambda value, work: not isinstance(value, dict) or len(value) <= most)
    if node.required:
        required = node.required
        tests.append(lambda value, work: not isinstance(value, dict) or required <= value.keys())
    if not node.properties and node.additional is None:
        return tests
    properties, additional = node.properties, node.additional

    def properties_fit(value: Any, work: Work) -> bool:
        if not isinstance(value, dict):
            return True
        for key, item in value.items():
            part = properties.get(key, additional)
            if part is not None and not part.surely_valid(item, work):
                return False
        return True

    return [*tests, properties_fit]
