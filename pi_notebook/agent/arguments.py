"""Arguments of a tool call: coercion, then validation, and error texts made for a model to mend its call.

Every tool, from a function or with a JSON Schema, goes through the same two steps: `Validator.validate` gives the
arguments in JSON form (what events and approvals show), and for pydantic parameters `validate_with_pydantic` then
makes Python values of them. A valid call needs no jsonschema, whose import is slow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..ai.json_arguments import MAX_DEPTH, InvalidArgumentsError, call_arguments, is_deeper_than, parse_arguments
from ..errors import ToolArgumentsError
from ._json_schema.coercion import Document, TooComplex, Work
from ._json_schema.formats import FORMATS, PYDANTIC_FORMATS
from ._json_schema.plain import plain_schema
from ._json_schema.values import copy_json
from ._json_schema.words import path_of, received, shown

if TYPE_CHECKING:
    from pydantic import ValidationError

    from ._json_schema.errors import SchemaChecker

_RECEIVED_LIMIT = 4_000
Errors = Sequence[tuple[str, str]]


def compile_schema(schema: Any, *, for_pydantic: bool = False) -> Validator:
    """The validator for a tool's JSON Schema (any draft; local `$ref`s only). `schema` must not change afterwards.

    Args:
        for_pydantic: pydantic reads the values afterwards and is the judge of their `format`s.

    Raises:
        ToolDefinitionError: The schema cannot be used; says where and why.
    """
    return Validator(schema, for_pydantic=for_pydantic)


class Validator:
    """A compiled schema. Holds no state of a validation: threads may share it."""

    def __init__(self, schema: Any, *, for_pydantic: bool = False) -> None:
        self._plain = plain_schema(schema, for_pydantic=for_pydantic)
        self._formats = PYDANTIC_FORMATS if for_pydantic else FORMATS
        self._document = Document(self._plain, self._is_valid, self._formats)

    @cached_property
    def _checker(self) -> SchemaChecker:
        from ._json_schema.errors import SchemaChecker

        return SchemaChecker(self._plain, self._formats)

    def _is_valid(self, schema: Any, value: Any, work: Work) -> bool:
        return self._checker.is_valid(schema, value, work)

    def validate(self, tool_name: str, raw: Any) -> dict[str, Any]:
        """`raw` coerced and valid, as a new dict that shares nothing with it. `raw` is not changed.

        A text is read as the JSON text of the arguments. A text in a place for a list or an object is decoded once,
        if the arguments are not valid as they came.

        Raises:
            ToolArgumentsError: Names the path of every error. Nothing else is raised, whatever `raw` is.
        """
        try:
            given = _as_object(raw)
            work = Work(10_000 + 20 * _size(given))
            arguments, errors = self._check(given, work)
            if errors:
                arguments, errors = self._check_decoded(arguments, errors, work)
        except _Unusable as error:
            errors = [("root", str(error))]
        except TooComplex:
            errors = [("root", "the value is too deeply nested for the recursive schema: send a simpler one")]
        except RecursionError:
            errors = [("root", "the value does not fit and is too deeply nested to say where: send a simpler one")]
        except Exception as error:  # an object of Python that cannot be shown or compared, among the arguments
            errors = [("root", f"cannot be checked against the schema ({type(error).__name__})")]
        if errors:
            raise arguments_error(tool_name, errors, raw)
        return arguments

    def _check(self, given: dict[str, Any], work: Work) -> tuple[dict[str, Any], Errors]:
        """A coerced copy and what is wrong with it."""
        root = self._document.root
        coerced: dict[str, Any] = root.coerce(copy_json(given), work)  # no conversion applies to an object itself
        if root.surely_valid(coerced, work):
            return coerced, ()
        return coerced, self._checker.errors(coerced, work)

    def _check_decoded(self, arguments: dict[str, Any], errors: Errors, work: Work) -> tuple[dict[str, Any], Errors]:
        """The same once more, with the texts decoded that hold the JSON of a list or an object wanted there."""
        decoded = copy_json(arguments)
        found = False
        for place in self._checker.places_of_wrong_text(arguments, work):
            parent = decoded
            for key in place[:-1]:
                parent = parent[key]
            text = parent[place[-1]]
            values = call_arguments(text) if text.strip()[:1] in ("[", "{") else ()
            if len(values) == 1 and isinstance(values[0], list | dict):
                parent[place[-1]] = values[0]
                found = True
        if not found:
            return arguments, errors
        arguments, errors_decoded = self._check(decoded, work)
        if not errors_decoded:
            return arguments, ()
        known = {path for path, _ in errors}
        return arguments, [*errors, *(error for error in errors_decoded if error[0] not in known)]


class _Unusable(Exception):
    """The arguments are no object, with a text that says what they are."""


def _as_object(raw: Any) -> dict[str, Any]:
    if isinstance(raw, str):
        try:
            objects = parse_arguments(raw)
        except InvalidArgumentsError as error:
            raise _Unusable(f"expected a JSON object, got text that is none: {error}") from None
        if len(objects) > 1:
            raise _Unusable(f"expected one JSON object, got {len(objects)} in a row: make one call for each")
        return objects[0]
    if not isinstance(raw, dict):
        raise _Unusable(f"expected a JSON object, {received(raw)}")
    if is_deeper_than(MAX_DEPTH, [raw]):
        raise _Unusable(f"expected a JSON object, got one nested more than {MAX_DEPTH} levels deep")
    return raw


def _size(value: Any) -> int:
    """How many values there are inside `value`."""
    total = 0
    todo = [value]
    while todo:
        items = todo.pop()
        total += len(items)
        todo.extend(
            item for item in (items.values() if isinstance(items, dict) else items) if isinstance(item, dict | list)
        )
    return total


def arguments_error(tool_name: str, errors: Errors, received_arguments: Any) -> ToolArgumentsError:
    """The error whose text a model can mend its call by: every path, then the arguments received."""
    lines = "\n".join(f"  - {path}: {text}" for path, text in errors)
    try:
        arguments = json.dumps(received_arguments, indent=2, ensure_ascii=False, default=repr)
    except Exception:  # no JSON, or an object of Python whose repr fails
        arguments = shown(received_arguments)
    if len(arguments) > _RECEIVED_LIMIT:
        arguments = f"{arguments[:_RECEIVED_LIMIT]}\n... (cut; {len(arguments)} characters in all)"
    return ToolArgumentsError(
        f'Validation failed for tool "{tool_name}":\n{lines}\n\nReceived arguments:\n{arguments}',
        errors,
        received_arguments,
    )


def validate_with_pydantic(tool_name: str, parameters: Any, arguments: dict[str, Any]) -> Any:
    """Validated arguments as the Python values of `parameters`, a pydantic model or `TypeAdapter`.

    `arguments` is what `Validator.validate` returned, and is not changed.

    Raises:
        ToolArgumentsError: pydantic knows more than the schema says; same form of text, same paths.
    """
    from pydantic import ValidationError

    validate: Callable[[Any], Any] = getattr(parameters, "model_validate", None) or parameters.validate_python
    try:
        return validate(copy_json(arguments))
    except ValidationError as error:
        raise arguments_error(tool_name, _pydantic_errors(error, arguments), arguments) from None
    except Exception as error:  # a validator of the tool's author that fails otherwise
        text = f"refused by the tool: {type(error).__name__}: {error}"
        raise arguments_error(tool_name, [("root", text)], arguments) from error


def _pydantic_errors(error: ValidationError, arguments: Any) -> Errors:
    found = []
    for detail in error.errors(include_url=False, include_context=False):
        missing = detail["type"] in ("missing", "missing_argument")
        parts = _place(detail["loc"], arguments, missing)
        text = detail["msg"]
        for start, ours in (("Input should be ", "expected "), ("Value error, ", ""), ("Assertion failed, ", "")):
            if text.startswith(start):
                text = ours + text.removeprefix(start)
        got = "got nothing: it is required" if missing else received(detail["input"])
        found.append((path_of(parts, missing=missing), f"expected a value, {got}" if missing else f"{text}, {got}"))
    return list(dict.fromkeys(found))


def _place(location: Sequence[str | int], arguments: Any, missing: bool) -> list[str | int]:
    """The path in the arguments of pydantic's location, which also names branches of unions and validators."""
    parts: list[str | int] = []
    value: Any = arguments
    for number, part in enumerate(location):
        if _has(value, part):
            value = value[part]
        elif not (missing and number == len(location) - 1):
            continue
        parts.append(part)
    return parts


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value
