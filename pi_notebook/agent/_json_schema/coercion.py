"""Coercion of arguments by a JSON Schema, and a fast check that only ever says "surely valid".

The rules are those of the reference (`utils/validation.ts` of pi-ai): what a model plainly meant is converted
(`"5"` for a number, `1` for a boolean, `5` for a string), unions take the first branch that fits as it is, else the
first that fits after conversion. Beyond it we follow `$ref`, `prefixItems` and `patternProperties`, and never invent
a value from `null`: an optional property with a `null` that its schema does not admit counts as not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .fast_check import DECIDED_FAST, Test, tests_of
from .plain import pattern_test
from .values import copy_json, has_type, number_text, parse_number

_MISSING: Any = object()


class TooComplex(Exception):
    """A recursive schema and a hostile value would keep the validator busy for ever."""


class Work:
    """A limit on how often references are followed during one validation."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit

    def follow(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooComplex


class Document:
    """A plain schema compiled. Holds no state of a validation, so threads may share it."""

    def __init__(
        self,
        plain: dict[str, Any],
        is_valid: Callable[[Any, Any, Work], bool],
        formats: Mapping[str, Callable[[str], bool]],
    ) -> None:
        """`is_valid(schema, value, work)` is the slow and sure check, for what the fast one cannot decide."""
        self.is_valid = is_valid
        self.formats = formats
        self.exact = True
        self.definitions: dict[str, Node] = {}
        self._schemas = plain.get("$defs", {})
        self.root = Node(plain, self)

    def definition(self, reference: str) -> Node:
        number = reference.rpartition("/")[2]
        if number not in self.definitions:
            # Registered before it is filled: a recursive schema finds itself here.
            node = self.definitions[number] = Node.__new__(Node)
            node.__init__(self._schemas[number], self)  # type: ignore[misc]
        return self.definitions[number]


class Node:
    """One schema of the document."""

    __slots__ = (
        "_admits_null",
        "additional",
        "all_of",
        "document",
        "items",
        "patterns",
        "prefix",
        "properties",
        "required",
        "schema",
        "target",
        "tests",
        "types",
        "unions",
    )

    def __init__(self, schema: dict[str, Any] | bool, document: Document) -> None:
        self.schema = schema
        self.document = document
        self._admits_null: bool | None = None
        keywords = schema if isinstance(schema, dict) else {}

        def node(keyword: str) -> Node | None:
            return Node(keywords[keyword], document) if keyword in keywords else None

        def nodes(keyword: str) -> list[Node]:
            return [Node(part, document) for part in keywords.get(keyword, ())]

        types = keywords.get("type", ())
        self.types: tuple[str, ...] = (types,) if isinstance(types, str) else tuple(types)
        self.properties = {key: Node(part, document) for key, part in keywords.get("properties", {}).items()}
        self.required = frozenset(keywords.get("required", ()))
        self.additional = node("additionalProperties")
        self.patterns = [
            (pattern_test(pattern), Node(part, document))
            for pattern, part in keywords.get("patternProperties", {}).items()
        ]
        self.items = node("items")
        self.prefix = nodes("prefixItems")
        self.all_of = nodes("allOf")
        self.unions = [branches for branches in (nodes("anyOf"), nodes("oneOf")) if branches]
        self.target = document.definition(keywords["$ref"]) if "$ref" in keywords else None
        self.tests: list[Test] = tests_of(self)
        if not keywords.keys() <= DECIDED_FAST:
            document.exact = False
            self.tests = [lambda value, work: False]

    def surely_valid(self, value: Any, work: Work) -> bool:
        """True means valid. False means invalid only where `document.exact`."""
        for test in self.tests:  # noqa: SIM110 (a generator costs more than the tests)
            if not test(value, work):
                return False
        return True

    def is_valid(self, value: Any, work: Work) -> bool:
        if self.surely_valid(value, work):
            return True
        return not self.document.exact and self.document.is_valid(self.schema, value, work)

    @property
    def admits_null(self) -> bool:
        if self._admits_null is None:
            self._admits_null = self.is_valid(None, Work(10_000))
        return self._admits_null

    def coerce(self, value: Any, work: Work) -> Any:
        """`value` converted where that makes it fit; lists and objects are changed in place."""
        if self.target is not None:
            work.follow()
            value = self.target.coerce(value, work)
        for part in self.all_of:
            value = part.coerce(value, work)
        for branches in self.unions:
            value = _coerce_union(value, branches, work)
        if self.types and not (len(self.types) > 1 and any(has_type(value, name) for name in self.types)):
            for name in self.types:
                converted = _convert(value, name)
                if converted is not value:
                    value = converted
                    break
        if isinstance(value, float) and "integer" in self.types and value.is_integer():
            value = int(value)
        if isinstance(value, dict) and "object" in self.types:
            self._coerce_object(value, work)
        elif isinstance(value, list) and "array" in self.types:
            self._coerce_array(value, work)
        return value

    def _coerce_object(self, value: dict[str, Any], work: Work) -> None:
        for key, part in self.properties.items():
            item = value.get(key, _MISSING)
            if item is None and key not in self.required and not part.admits_null:
                del value[key]
            elif item is not _MISSING:
                value[key] = part.coerce(item, work)
        if not self.patterns and (self.additional is None or self.additional.schema is True):
            return
        for key in value:
            matching = [part for matches, part in self.patterns if matches(key)]
            for part in matching:
                value[key] = part.coerce(value[key], work)
            if self.additional is not None and not matching and key not in self.properties:
                value[key] = self.additional.coerce(value[key], work)

    def _coerce_array(self, value: list[Any], work: Work) -> None:
        for index, part in enumerate(self.prefix[: len(value)]):
            value[index] = part.coerce(value[index], work)
        if self.items is not None:
            coerce = self.items.coerce
            for index in range(len(self.prefix), len(value)):
                value[index] = coerce(value[index], work)


def _coerce_union(value: Any, branches: list[Node], work: Work) -> Any:
    for branch in branches:
        if branch.is_valid(value, work):
            return value
    for branch in branches:
        candidate = branch.coerce(copy_json(value), work)
        if branch.is_valid(candidate, work):
            return candidate
    return value


def _convert(value: Any, name: str) -> Any:
    """`value` as the type `name` if that is what it plainly means, else the very same object."""
    if name == "number" or name == "integer":
        if isinstance(value, bool):
            return int(value)
        number = parse_number(value) if isinstance(value, str) else None
        return value if number is None or not has_type(number, name) else number
    if name == "boolean":
        if isinstance(value, str):
            return {"true": True, "false": False}.get(value, value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value in (0, 1):
            return bool(value)
    elif name == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float) and (isinstance(value, float) or value.bit_length() < 10_000):
            return number_text(value)
    elif name == "null" and (value == "" or value is False or (value == 0 and not isinstance(value, bool))):
        return None
    return value
