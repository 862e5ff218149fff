"""Keywords of jsonschema replaced: where the reference counts or compares otherwise, where the patterns of jsonschema
could stall, where references could go on for ever, and where an error has to name its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from .coercion import Work
from .plain import pattern_test
from .values import is_multiple, text_length
from .words import SHOWN, received, shown, wanted

current_work: ContextVar[Work] = ContextVar("pi_notebook_validation_work")


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
            below = list(validator.descend(key, names))
            if below:
                from .errors import describe

                reasons = "; ".join(describe(error) for error in below)
                yield ValidationError(f"the property name {shown(key, 60)} does not do: {reasons}")


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
            yield ValidationError(f"{bound} of the items to fit {shown(part)}, and {count} do")


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
    current_work.get().follow()
    yield from Draft202012Validator.VALIDATORS["$ref"](validator, reference, value, schema)


def _tested(kind: type | tuple[type, ...], fits: Callable[[Any, Any], bool]) -> Any:
    """A keyword that is one test on values of one kind."""

    def keyword(validator: Any, argument: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(value, kind) and not isinstance(value, bool) and not fits(argument, value):
            yield ValidationError("unfit")

    return keyword


PlainValidator: Any = extend(  # type: ignore[no-untyped-call, unused-ignore]
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
