"""Tool authors' JSON Schemas, brought into one plain form that both the coercer and jsonschema read alike.

The plain form is draft 2020-12 with only the keywords that decide something. As in the reference, what older drafts
spell differently is translated (`additionalItems` stays: the reference does not coerce by it), and a keyword of the
wrong type or an unknown `type` is ignored.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ...errors import ToolDefinitionError

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_SCHEMA = ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains", "not")
_SCHEMAS = (*_SCHEMA, "additionalItems", "propertyNames", "if", "then", "else")
_KEEP_FALSE = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
)  # fmt: skip


def plain_schema(schema: Any, *, for_pydantic: bool = False) -> dict[str, Any]:
    """The plain form of `schema`; every `$ref` in it reads `#/$defs/NUMBER`. `schema` is not changed.

    Args:
        for_pydantic: Leave out what pydantic itself does not ask for: that the items of a set differ as they come,
            and patterns which only a slow engine can read (it gives one for decimals).

    Raises:
        ToolDefinitionError: A part is no schema, a pattern cannot be compiled, or a `$ref` leads nowhere, outside
            (nothing is ever fetched), or in a circle.
    """
    if not isinstance(schema, Mapping):
        raise ToolDefinitionError(f"A tool's parameters must be a JSON Schema object, not {schema!r:.200}.")
    try:
        return _Plain(schema, for_pydantic).document()
    except RecursionError:
        raise ToolDefinitionError("The schema is nested too deeply.") from None


class _Plain:
    def __init__(self, root: Mapping[str, Any], for_pydantic: bool) -> None:
        self.root = root
        self.for_pydantic = for_pydantic
        self.numbers: dict[str, int] = {}
        self.definitions: dict[str, Any] = {}

    def document(self) -> dict[str, Any]:
        document = self.convert(self.root, "")
        assert isinstance(document, dict)
        for number in self.numbers.values():
            self.refuse_circle(number)
        if self.definitions:
            document = {**document, "$defs": self.definitions}
        return document

    def convert(self, schema: Any, path: str) -> dict[str, Any] | bool:
        if isinstance(schema, bool):
            # jsonschema loses the path of what a bare `false` refuses.
            return schema or {"enum": []}
        if not isinstance(schema, Mapping):
            raise ToolDefinitionError(f"The schema has {schema!r:.100} at {_at(path)}, which is no schema.")
        plain: dict[str, Any] = {}
        schema = _modern(schema)
        for keyword, value in schema.items():
            here = f"{path}/{keyword}"
            if keyword in _SCHEMAS and value is not None:
                plain[keyword] = self.convert(value, here)
                if keyword in _KEEP_FALSE and value is False:
                    plain[keyword] = False
            elif keyword in _MAPS and isinstance(value, Mapping):
                plain[keyword] = {str(key): self.convert(sub, f"{here}/{key}") for key, sub in value.items()}
            elif keyword in _LISTS and isinstance(value, list | tuple):
                plain[keyword] = [self.convert(sub, f"{here}/{i}") for i, sub in enumerate(value)]
            elif keyword == "$ref" and isinstance(value, str):
                plain[keyword] = f"#/$defs/{self.reference(value, here)}"
            elif _is_sound(keyword, value):
                plain[keyword] = value
        if self.for_pydantic:
            plain.pop("uniqueItems", None)
            if "pattern" in plain and not is_linear(plain["pattern"]):
                del plain["pattern"]
        for pattern in (plain.get("pattern"), *plain.get("patternProperties", ())):
            if pattern is not None:
                self.refuse_pattern(pattern, path)
        return plain

    def reference(self, reference: str, path: str) -> int:
        """The number of the definition that `reference` points to, which is converted at the first use."""
        if reference not in self.numbers:
            target = self.find(reference, path)
            number = self.numbers[reference] = len(self.numbers)
            self.definitions[str(number)] = self.convert(target, reference)
        return self.numbers[reference]

    def find(self, reference: str, path: str) -> Any:
        if not reference.startswith("#"):
            raise ToolDefinitionError(
                f"The schema refers to {reference!r} at {_at(path)}. Only references inside the schema (#/...) "
                f"are followed, nothing is fetched: put the definition under $defs."
            )
        target: Any = self.root
        if reference[1:2] not in ("", "/"):
            target = _find_anchor(self.root, reference[1:])
        else:
            for part in _pointer(reference):
                if isinstance(target, Mapping) and part in target:
                    target = target[part]
                elif isinstance(target, list | tuple) and part.isdecimal() and int(part) < len(target):
                    target = target[int(part)]
                else:
                    target = None
                    break
        if target is None:
            raise ToolDefinitionError(
                f"The schema refers to {reference!r} at {_at(path)}, which is not there: define it."
            )
        return target

    def refuse_circle(self, number: int) -> None:
        """A definition that applies itself to the same value says nothing and could be followed for ever."""
        seen, todo = {number}, [self.definitions[str(number)]]
        while todo:
            schema = todo.pop()
            if not isinstance(schema, dict):
                continue
            for keyword in ("allOf", "anyOf", "oneOf"):
                todo.extend(schema.get(keyword, ()))
            todo.extend(schema[keyword] for keyword in ("not", "if", "then", "else") if keyword in schema)
            todo.extend(schema.get("dependentSchemas", {}).values())
            if "$ref" in schema:
                target = int(schema["$ref"].rpartition("/")[2])
                if target == number:
                    reference = next(key for key, value in self.numbers.items() if value == number)
                    raise ToolDefinitionError(f"In the schema {reference!r} refers to itself in a circle.")
                if target not in seen:
                    seen.add(target)
                    todo.append(self.definitions[str(target)])

    def refuse_pattern(self, pattern: str, path: str) -> None:
        try:
            pattern_test(pattern)
        except ValueError as error:
            raise ToolDefinitionError(
                f"The schema has a pattern at {_at(path)} that is no regular expression: {pattern!r} ({error})."
            ) from None


@lru_cache(maxsize=256)
def pattern_test(pattern: str) -> Callable[[str], bool]:
    """A function that says whether `pattern` (as JavaScript reads it) is found in a text.

    The engine is pydantic's, which takes linear time on any text, so arguments cannot stall the process. Patterns
    that it does not know (look-around, back-references) fall to Python's.

    Raises:
        ValueError: If it is no regular expression.
    """
    pattern = _ascii_classes(pattern)
    if test := _linear_test(pattern):
        return test
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about sets of characters that Python may read otherwise
            search = re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern)).search
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    return lambda text: search(text) is not None


def is_linear(pattern: str) -> bool:
    """Whether `pattern_test` takes linear time."""
    return _linear_test(_ascii_classes(pattern)) is not None


def _linear_test(pattern: str) -> Callable[[str], bool] | None:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except SchemaError:
        return None


def _ascii_classes(pattern: str) -> str:
    return re.sub(r"\\(.)", _ascii_class, pattern, flags=re.DOTALL)


# A whole escape, so that the second backslash of `\\\\d` is not taken for the start of one.
_ASCII_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}


def _ascii_class(found: re.Match[str]) -> str:
    """`\\d` and `\\w` mean ASCII in JavaScript and all of Unicode in other engines."""
    letters = _ASCII_CLASSES.get(found[1])
    if letters is None:
        return found[0]
    before = found.string[: found.start()]
    inside_class = before.rfind("[") > before.rfind("]")
    return letters if inside_class else f"[{letters}]"


def _modern(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of older drafts under their present names."""
    modern = {str(key): value for key, value in schema.items()}
    if isinstance(modern.get("items"), list | tuple):
        modern["prefixItems"] = modern.pop("items")
    else:
        modern.pop("additionalItems", None)
    dependencies = modern.pop("dependencies", None)
    if isinstance(dependencies, Mapping):
        needed = dict(modern.get("dependentRequired", {}))
        schemas = dict(modern.get("dependentSchemas", {}))
        for key, value in dependencies.items():
            if isinstance(value, list | tuple):
                needed[key] = [*needed.get(key, ()), *value]
            else:
                schemas[key] = {"allOf": [schemas[key], value]} if key in schemas else value
        modern["dependentRequired"], modern["dependentSchemas"] = needed, schemas
    for old in ("$dynamicRef", "$recursiveRef"):
        if old in modern:
            modern.setdefault("$ref", modern.pop(old))
    return modern


def _is_sound(keyword: str, value: Any) -> bool:
    """Whether a keyword that holds no schema decides something and has a value that can be used."""
    if keyword == "type":
        return value in TYPES if isinstance(value, str) else bool(value) and _all_in(value, TYPES)
    if keyword in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if keyword == "multipleOf":
        return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if keyword in _COUNTS:
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if keyword == "required":
        return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    if keyword == "dependentRequired":
        return isinstance(value, Mapping) and all(isinstance(names, list | tuple) for names in value.values())
    if keyword == "enum":
        return isinstance(value, list | tuple)
    return (
        keyword == "const"
        or (keyword == "uniqueItems" and value is True)
        or (keyword in ("format", "pattern") and isinstance(value, str))
    )


def _all_in(values: Any, allowed: tuple[str, ...]) -> bool:
    return isinstance(values, list | tuple) and all(value in allowed for value in values)


def _pointer(reference: str) -> list[str]:
    from urllib.parse import unquote

    parts = unquote(reference[1:]).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _find_anchor(schema: Any, name: str) -> Any:
    if isinstance(schema, Mapping):
        if name in (schema.get("$anchor"), schema.get("$dynamicAnchor")):
            return schema
        schema = list(schema.values())
    if isinstance(schema, list | tuple):
        for part in schema:
            if (found := _find_anchor(part, name)) is not None:
                return found
    return None


def _at(path: str) -> str:
    return path.removeprefix("#").strip("/").replace("/", ".") or "the top"
