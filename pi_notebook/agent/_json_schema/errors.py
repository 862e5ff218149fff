"""What is wrong with arguments, by jsonschema, in words made for a model that has to mend its call.

Imported only once something did not fit: importing jsonschema is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import ValidationError

from .coercion import Work
from .formats import EXAMPLES
from .keywords import PlainValidator, current_work
from .values import text_length
from .words import SHOWN, path_of, received, shown, wanted

MAX_ERRORS = 60


class SchemaChecker:
    """jsonschema for one plain schema; holds no state of a validation."""

    def __init__(self, plain: dict[str, Any], formats: Mapping[str, Callable[[str], bool]]) -> None:
        checker = FormatChecker(formats=())
        for name, is_format in formats.items():
            checker.checks(name)(_for_strings(is_format))
        self._validator = PlainValidator(plain, format_checker=checker)

    def is_valid(self, schema: Any, value: Any, work: Work) -> bool:
        """Whether `value` fits `schema`, a part of the document. Raises `TooComplex`."""
        token = current_work.set(work)
        try:
            return next(self._validator.evolve(schema=schema).iter_errors(value), None) is None
        finally:
            current_work.reset(token)

    def errors(self, value: Any, work: Work) -> list[tuple[str, str]]:
        """Path and text of every error (at most `MAX_ERRORS`, and a word on the rest). Raises `TooComplex`."""
        token = current_work.set(work)
        try:
            found = list(islice(_flatten(self._validator.iter_errors(value)), 20 * MAX_ERRORS))
        finally:
            current_work.reset(token)
        unique = list(dict.fromkeys(found))
        if len(unique) > MAX_ERRORS:
            unique[MAX_ERRORS:] = [("root", f"and {len(unique) - MAX_ERRORS} or more errors beyond these")]
        return unique

    def places_of_wrong_text(self, value: Any, work: Work) -> list[tuple[str | int, ...]]:
        """Where a text stands and the schema wants a list or an object."""
        token = current_work.set(work)
        try:
            errors = list(islice(_with_context(self._validator.iter_errors(value)), 20 * MAX_ERRORS))
        finally:
            current_work.reset(token)
        places = {
            tuple(error.absolute_path): None
            for error in errors
            if error.validator == "type" and isinstance(error.instance, str) and _wants_container(error)
        }
        return list(places)


def _for_strings(is_format: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or is_format(value)


def _wants_container(error: ValidationError) -> bool:
    types: Any = error.validator_value
    return bool({"array", "object"} & set([types] if isinstance(types, str) else types))


def _with_context(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    for error in errors:
        yield from _with_context(error.context or ())
        yield error


def _flatten(errors: Iterable[ValidationError]) -> Iterator[tuple[str, str]]:
    """Errors of the branches of a union first, then that none of them fits."""
    for error in errors:
        if error.validator != "propertyNames":
            yield from _flatten(error.context or ())
        yield path_of(error.absolute_path, missing=error.validator == "required"), describe(error)


def describe(error: ValidationError) -> str:
    """One error in our words: what was expected, what came."""
    argument: Any = error.validator_value
    value: Any = error.instance
    template = _WORDS.get(str(error.validator), "{message}")
    return template.format(
        message=error.message[: 6 * SHOWN],
        argument=argument if isinstance(argument, str | int | float) else "",
        json=shown(argument),
        count=f"{argument:g}" if isinstance(argument, int | float) else "",
        s="" if argument == 1 else "s",
        ies="y" if argument == 1 else "ies",
        types=wanted({"type": argument}) if error.validator == "type" else "",
        choices=wanted({"enum": argument}) if error.validator == "enum" else "",
        example=f" such as {EXAMPLES[argument]}" if error.validator == "format" and argument in EXAMPLES else "",
        branches=_branches(argument) if error.validator in ("anyOf", "oneOf") else "",
        fitting="none fits" if error.context else "several fit",
        size=_size(value),
        shown=shown(value),
        got=received(value),
    )


def _size(value: Any) -> int:
    if isinstance(value, str):
        return text_length(value)
    return len(value) if isinstance(value, list | dict) else 0


def _branches(branches: Any) -> str:
    words = list(dict.fromkeys(wanted(branch) for branch in branches))
    named = f" ({', '.join(words)[: 2 * SHOWN]})" if words != ["a value"] else ""
    return f"{len(branches)} alternatives{named}"


# Keywords that are not here word their errors themselves, in `keywords`.
_WORDS = {
    "type": "expected {types}, {got}",
    "required": "expected {message}, got nothing: it is required",
    "enum": "expected {choices}, {got}",
    "const": "expected {json} and nothing else, {got}",
    "minimum": "expected a number >= {argument}, {got}",
    "maximum": "expected a number <= {argument}, {got}",
    "exclusiveMinimum": "expected a number > {argument}, {got}",
    "exclusiveMaximum": "expected a number < {argument}, {got}",
    "multipleOf": "expected a multiple of {argument}, {got}",
    "minLength": "expected at least {count} character{s}, got {size}: {shown}",
    "maxLength": "expected at most {count} character{s}, got {size}: {shown}",
    "minItems": "expected at least {count} item{s}, got {size}: {shown}",
    "maxItems": "expected at most {count} item{s}, got {size}: {shown}",
    "minProperties": "expected at least {count} propert{ies}, got {size}: {shown}",
    "maxProperties": "expected at most {count} propert{ies}, got {size}: {shown}",
    "uniqueItems": "expected items that all differ, {got}",
    "pattern": "expected text matching {json}, {got}",
    "format": "expected text in the format {argument}{example}, {got}",
    "not": "expected a value that does not fit {json}, {got}",
    "contains": "expected {message}, {got}",
    "anyOf": "expected a value that fits one of {branches}, {got}",
    "oneOf": "expected a value that fits exactly one of {branches}, {fitting}: {got}",
    "unevaluatedItems": "expected no further items, {got}",
    "unevaluatedProperties": "expected no properties beyond those of the schema, {got}",
}
