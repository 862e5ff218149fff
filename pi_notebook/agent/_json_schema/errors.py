"""What is wrong with arguments, by jsonschema, in words made for a model that has to mend its call.

Imported only once something did not fit: importing jsonschema is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from .coercion import Work
from .formats import EXAMPLES
from .plain import pattern_test
from .values import is_multiple, text_length
from .words import SHOWN, path_of, received, shown, wanted

MAX_ERRORS = 60
_work: ContextVar[Work] = ContextVar("pi_notebook_validation_work")


class SchemaChecker:
    """jsonschema for one plain schema; holds no state of a validation."""

    def __init__(self, plain: dict[str, Any], formats: Mapping[str, Callable[[str], bool]]) -> None:
        checker = FormatChecker(formats=())
        for name, is_format in formats.items():
            checker.checks(name)(_for_strings(is_format))
        self._validator = _Validator(plain, format_checker=checker)

    def is_valid(self, schema: Any, value: Any, work: Work) -> bool:
        """Whether `value` fits `schema`, a part of the document. Raises `TooComplex`."""
        token = _work.set(work)
        try:
            return next(self._validator.evolve(schema=schema).iter_errors(value), None) is None
        finally:
            _work.reset(token)

    def errors(self, value: Any, work: Work) -> list[tuple[str, str]]:
        """Path and text of every error (at most `MAX_ERRORS`, and a word on the rest). Raises `TooComplex`."""
        token = _work.set(work)
        try:
            found = list(islice(_flatten(self._validator.iter_errors(value)), 20 * MAX_ERRORS))
        finally:
            _work.reset(token)
        unique = list(dict.fromkeys(found))
        if len(unique) > MAX_ERRORS:
            unique[MAX_ERRORS:] = [("root", f"and {len(unique) - MAX_ERRORS} or more errors beyond these")]
        return unique

    def places_of_wrong_text(self, value: Any, work: Work) -> list[tuple[str | int, ...]]:
        """Where a text stands and the schema wants a list or an object."""
        token = _work.set(work)
        try:
            errors = list(islice(_with_context(self._validator.iter_errors(value)), 20 * MAX_ERRORS))
        finally:
            _work.reset(token)
        places = {
            tuple(error.absolute_path): None
            for error in errors
            if error.validator == "type" and isinstance(error.instance, str) and _wants_container(error)
        }
        return list(places)


def _for_strings(is_format: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or is_format(value)


def _wants_container(error: ValidationError) -> bool:
    wanted = error.validator_value
    return bool({"array", "object"} & set([wanted] if isinstance(wanted, str) else wanted))


def _with_context(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    for error in errors:
        yield from _with_context(error.context or ())
        yield error


def _flatten(errors: Iterable[ValidationError]) -> Iterator[tuple[str, str]]:
    """Errors of the branches of a union first, then that none of them fits."""
    for error in errors:
        if error.validator != "propertyNames":
            yield from _flatten(error.context or ())
        yield path_of(error.absolute_path, missing=error.validator == "required"), _describe(error)


def _describe(error: ValidationError) -> str:
    """One error in our words: what was expected, what came."""
    words = _WORDS.get(str(error.validator))
    if words is None:
        return error.message[: 2 * SHOWN]
    return words(error.validator_value, error.instance, error)


def _alternatives(branches: Any) -> str:
    words = list(dict.fromkeys(wanted(branch) for branch in branches))
    return f" ({', '.join(words)[: 2 * SHOWN]})" if words != ["a value"] else ""


def _one_of_these(choices: Any) -> str:
    return f"one of {', '.join(shown(choice, 60) for choice in choices)[: 6 * SHOWN]}" if choices else "nothing here"


def _more(count: Any, one: str, many: str) -> str:
    return f"{count:g} {one if count == 1 else many}"


_Words = Callable[[Any, Any, Any], str]
_WORDS: dict[str, _Words] = {
    "type": lambda types, value, error: (
        f"expected {types if isinstance(types, str) else ' or '.join(types)}, {received(value)}"
    ),
    "required": lambda names, value, error: f"expected {error.message}, got nothing: it is required",
    "enum": lambda choices, value, error: (
        f"expected {_one_of_these(choices)}, {received(value)}"
    ),
    "const": lambda constant, value, error: f"expected {shown(constant)} and nothing else, {received(value)}",
    "minimum": lambda bound, value, error: f"expected a number >= {bound}, {received(value)}",
    "maximum": lambda bound, value, error: f"expected a number <= {bound}, {received(value)}",
    "exclusiveMinimum": lambda bound, value, error: f"expected a number > {bound}, {received(value)}",
    "exclusiveMaximum": lambda bound, value, error: f"expected a number < {bound}, {received(value)}",
    "multipleOf": lambda of, value, error: f"expected a multiple of {of}, {received(value)}",
    "minLength": lambda count, value, error: (
        f"expected at least {_more(count, 'character', 'characters')}, got {text_length(value)}: {shown(value)}"
    ),
    "maxLength": lambda count, value, error: (
        f"expected at most {_more(count, 'character', 'characters')}, got {text_length(value)}: {shown(value)}"
    ),
    "minItems": lambda count, value, error: (
        f"expected at least {_more(count, 'item', 'items')}, got {len(value)}: {shown(value)}"
    ),
    "maxItems": lambda count, value, error: (
        f"expected at most {_more(count, 'item', 'items')}, got {len(value)}: {shown(value)}"
    ),
    "minProperties": lambda count, value, error: (
        f"expected at least {_more(count, 'property', 'properties')}, got {len(value)}: {shown(value)}"
    ),
    "maxProperties": lambda count, value, error: (
        f"expected at most {_more(count, 'property', 'properties')}, got {len(value)}: {shown(value)}"
    ),
    "uniqueItems": lambda unique, value, error: f"expected items that all differ, {received(value)}",
    "pattern": lambda pattern, value, error: f"expected text matching {shown(pattern)}, {received(value)}",
    "format": lambda name, value, error: (
        f"expected text in the format {name}"
        + (f" such as {EXAMPLES[name]}" if name in EXAMPLES else "")
        + f", {received(value)}"
    ),
    "additionalProperties": lambda schema, value, error: error.message,
    "propertyNames": lambda schema, value, error: error.message,
    "dependentRequired": lambda needed, value, error: error.message,
    "not": lambda schema, value, error: f"expected a value that does not fit {shown(schema)}, {received(value)}",
    "if": lambda schema, value, error: error.message,
    "contains": lambda schema, value, error: (
        f"expected {error.message} that fit {shown(schema)}, {received(value)}"
    ),
    "anyOf": lambda branches, value, error: (
        f"expected a value that fits one of {len(branches)} alternatives{_alternatives(branches)}, {received(value)}"
    ),
    "oneOf": lambda branches, value, error: (
        f"expected a value that fits exactly one of {len(branches)} alternatives{_alternatives(branches)}, "
        f"{'several fit' if not error.context else 'none fits'}: {received(value)}"
    ),
    "unevaluatedItems": lambda schema, value, error: f"expected no further items, {received(value)}",
    "unevaluatedProperties": lambda schema, value, error: (
        f"expected no properties beyond those of the schema, {received(value)}"
    ),
}  # fmt: skip


# What follows replaces keywords of jsonschema: where the reference counts or compares otherwise, where jsonschema's
# patterns could stall, and where an error has to name its place.


def _required(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    for name in names:
        if name not in value:
            yield ValidationError(wanted(properties.get(name)), path=[name])


def _additional_properties(validator: Any, extra: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict) or extra is True:
        return
    patterns = [pattern_test(pattern) for pattern in schema.get("patternProperties", {})]
    known = schema.get("properties", {})
    names = [key for key in value if key not in known and not any(matches(key) for matches in patterns)]
    errors = []
    unfit = []
    for name in names:
        below = list(validator.descend(value[name], extra, path=name)) if extra is not False else []
        if below or extra is False:
            unfit.append(name)
            errors += below
    if unfit:
        allowed = ", ".join(shown(name, 60) for name in known)[: 3 * SHOWN] or "none"
        came = ", ".join(shown(name, 60) for name in unfit)[: 3 * SHOWN]
        if extra is False:
            yield ValidationError(
                f"unknown {'property' if len(unfit) == 1 else 'properties'} {came}; allowed: {allowed}"
            )
        else:
            yield ValidationError(f"expected every property beyond {allowed} to fit its schema, but not so {came}")
    yield from errors


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, part in patterns.items():
            matches = pattern_test(pattern)
            for key, item in value.items():
                if matches(key):
                    yield from validator.descend(item, part, path=key, schema_path=pattern)


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for key in value:
            below = [_describe(error) for error in validator.descend(key, names)]
            if below:
                yield ValidationError(f"the property name {shown(key, 60)} does not do: {'; '.join(below)}")


def _dependent_required(validator: Any, needed: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name, others in needed.items():
            missing = [other for other in others if other not in value] if name in value else []
            if missing:
                words = ", ".join(shown(other, 60) for other in missing)
                yield ValidationError(f"expected {words} too, because {shown(name, 60)} is given")


def _if(validator: Any, condition: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    holds = validator.evolve(schema=condition).is_valid(value)
    keyword = "then" if holds else "else"
    below = list(validator.descend(value, schema[keyword], schema_path=keyword)) if keyword in schema else []
    if below:
        case = f"a value that {'fits' if holds else 'does not fit'} {shown(condition)}"
        yield ValidationError(f"expected what the schema asks of {case}, {received(value)}")
        yield from below


def _items(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Serves `items` and `additionalItems`: what stands beyond `prefixItems`."""
    if isinstance(value, list) and part is not True:
        for index in range(len(schema.get("prefixItems", ())), len(value)):
            yield from validator.descend(value[index], part, path=index)


def _contains(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, list):
        least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
        count = sum(validator.evolve(schema=part).is_valid(item) for item in value)
        if not least <= count <= most:
            bound = f"at least {least}" if count < least else f"at most {most}"
            yield ValidationError(f"{bound} items (there are {count})")


def _one_of(validator: Any, branches: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """As jsonschema's, but without looking for more than two that fit."""
    below: list[ValidationError] = []
    fitting = 0
    for index, branch in enumerate(branches):
        errors = list(validator.descend(value, branch, schema_path=index))
        fitting += not errors
        below += errors
        if fitting > 1:
            break
    if fitting == 0:
        yield ValidationError("none", context=below)
    elif fitting > 1:
        yield ValidationError("several")


def _reference(validator: Any, reference: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    _work.get().follow()
    yield from Draft202012Validator.VALIDATORS["$ref"](validator, reference, value, schema)


def _tested(kind: type | tuple[type, ...], fits: Callable[[Any, Any], bool]) -> Any:
    """A keyword that is one test on values of one kind."""

    def keyword(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(value, kind) and not isinstance(value, bool) and not fits(argument, value):
            yield ValidationError("unfit")

    return keyword


_Validator = extend(
    Draft202012Validator,
    {
        "$ref": _reference,
        "required": _required,
        "additionalProperties": _additional_properties,
        "patternProperties": _pattern_properties,
        "propertyNames": _property_names,
        "dependentRequired": _dependent_required,
        "if": _if,
        "items": _items,
        "additionalItems": _items,
        "contains": _contains,
        "oneOf": _one_of,
        "multipleOf": _tested((int, float), lambda of, value: is_multiple(value, of)),
        "minLength": _tested(str, lambda count, value: text_length(value) >= count),
        "maxLength": _tested(str, lambda count, value: text_length(value) <= count),
        "pattern": _tested(str, lambda pattern, value: pattern_test(pattern)(value)),
    },
)
