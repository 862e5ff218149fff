"""`@tool(parameters=...)`: a JSON Schema or a pydantic model in the place of the signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ToolDefinitionError
from ._docstrings import Docstring
from ._signature import EMPTY, VAR_KEYWORD, VAR_POSITIONAL, Compiled, Parameter, read_parameters


def compile_given(
    function: Callable[..., Any],
    tool_name: str,
    given: Any,
    doc: Docstring,
    namespace: Mapping[str, Any] | None = None,
) -> Compiled:
    """How `function` is called with arguments of the schema or model `given`.

    The arguments are passed by name. A function whose only parameter is not one of the names is passed them whole:
    as a dict, or as the instance of the model.

    Raises:
        ToolDefinitionError: `given` is neither, or the function does not take what it describes.
    """
    parameters, contexts = read_parameters(function, tool_name, doc, namespace)
    own = [each for each in parameters if each.name not in contexts]
    order = [(each.name, each.kind) for each in parameters]
    model: Any = None
    if isinstance(given, Mapping):
        schema = dict(given)
        names = set(schema.get("properties", {}))
    elif isinstance(given, type) and hasattr(given, "model_json_schema"):
        model = given
        schema = model.model_json_schema()
        names = set(model.model_fields)
    else:
        raise ToolDefinitionError(
            f"Tool {tool_name!r}: parameters must be a JSON Schema (dict) or a pydantic model class, "
            f"not {given!r:.100}."
        )
    whole = _whole(own, names)
    if whole is None:
        _refuse_mismatch(tool_name, own, names)
    defaults = _defaults(own)
    known = {each.name for each in own if not each.variadic}
    rest = next((each.name for each in own if each.kind == VAR_KEYWORD), None)

    def convert(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        value: Any = arguments
        if model is not None:
            from .arguments import validate_with_pydantic

            value = validate_with_pydantic(name, model, arguments)
        if whole is not None:
            return {whole: value}
        given_values = _fields_of(value, defaults) if model is not None else dict(value)
        if rest is not None:
            extras = {n: given_values.pop(n) for n in list(given_values) if n not in known}
            given_values[rest] = extras
        return given_values

    return Compiled(schema, convert, order, contexts, defaults, uses_pydantic=model is not None)


def _fields_of(instance: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, and the model's default for the rest where the function has none of its own."""
    missing = (name for name in type(instance).model_fields if name not in defaults)
    return {name: getattr(instance, name) for name in {*instance.model_fields_set, *missing}}


def _whole(own: list[Parameter], names: set[str]) -> str | None:
    """The parameter that takes all arguments as one value."""
    if len(own) == 1 and not own[0].variadic and own[0].name not in names:
        return own[0].name
    return None


def _refuse_mismatch(tool_name: str, own: list[Parameter], names: set[str]) -> None:
    takes = {each.name for each in own if not each.variadic}
    if not any(each.kind == VAR_KEYWORD for each in own) and (
        unknown := [name for name in sorted(names) if name not in takes]
    ):
        raise ToolDefinitionError(
            f"Tool {tool_name!r}: parameters= describes {', '.join(map(repr, unknown))}, which the function does not "
            f"take: name its parameters alike, or let it take them as one."
        )
    needed = [each.name for each in own if not each.variadic and each.default is EMPTY]
    if missing := [name for name in needed if name not in names]:
        raise ToolDefinitionError(
            f"Tool {tool_name!r}: the function needs {', '.join(map(repr, missing))}, which parameters= does not "
            f"describe."
        )


def _defaults(own: list[Parameter]) -> dict[str, Any]:
    return {
        each.name: each.default
        for each in own
        if each.default is not EMPTY and each.kind not in (VAR_POSITIONAL, VAR_KEYWORD)
    }
