"""The parameters of a function: which there are, their types as JSON Schema, and the call made of checked arguments."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter as InspectParameter
from typing import Annotated, Any, Union

from ..errors import ToolDefinitionError
from ._docstrings import Docstring
from ._json_form import goes_by_name
from ._simple_types import Convert, list_of, simple_type
from .tool import ToolContext

EMPTY = InspectParameter.empty
VAR_POSITIONAL, VAR_KEYWORD = InspectParameter.VAR_POSITIONAL, InspectParameter.VAR_KEYWORD


class UnresolvedAnnotation(Exception):
    """An annotation names something that is not defined yet; the text says which."""


@dataclass(slots=True)
class Parameter:
    """One parameter that a model fills in. `annotation` is resolved; `EMPTY` if there is none."""

    name: str
    kind: Any
    annotation: Any = EMPTY
    default: Any = EMPTY
    description: str = ""

    @property
    def variadic(self) -> bool:
        return self.kind in (VAR_POSITIONAL, VAR_KEYWORD)


@dataclass(slots=True)
class BoundCall:
    """Arguments as the function takes them; contexts are filled in when it is called."""

    args: list[Any]
    kwargs: dict[str, Any]

    def invoke(self, function: Callable[..., Any], context: ToolContext) -> Any:
        handed = context.host.handed

        def filled(value: Any) -> Any:
            if value is _CONTEXT:
                return context
            return handed.get(value, value) if handed and type(value) is str else value

        return function(*map(filled, self.args), **{name: filled(value) for name, value in self.kwargs.items()})


class _ContextMark:
    """Stands for the ToolContext, also after a way through another process."""

    def __reduce__(self) -> str:
        return "_CONTEXT"


_CONTEXT = _ContextMark()


@dataclass(slots=True)
class Compiled:
    """A signature ready for use.

    Args:
        schema: JSON Schema of the arguments.
        convert: `(tool_name, checked arguments) -> values by parameter name`; raises `ToolArgumentsError`.
        defaults: What is passed for a parameter that was not given.
    """

    schema: dict[str, Any]
    convert: Callable[[str, dict[str, Any]], dict[str, Any]]
    order: list[tuple[str, Any]]
    contexts: frozenset[str]
    defaults: dict[str, Any] = field(default_factory=dict)
    uses_pydantic: bool = False

    def bind(self, tool_name: str, arguments: dict[str, Any]) -> BoundCall:
        values = self.convert(tool_name, arguments)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        starred = any(values.get(name) for name, kind in self.order if kind is VAR_POSITIONAL)
        for name, kind in self.order:
            if name in self.contexts:
                value: Any = _CONTEXT
            elif name in values:
                value = values[name]
            elif name in self.defaults:
                value = self.defaults[name]
            else:
                continue
            if kind is VAR_POSITIONAL:
                args.extend(value)
            elif kind is VAR_KEYWORD:
                kwargs.update(value)
            elif kind is InspectParameter.POSITIONAL_ONLY or (
                starred and kind is InspectParameter.POSITIONAL_OR_KEYWORD
            ):
                args.append(value)
            else:
                kwargs[name] = value
        return BoundCall(args, kwargs)


def compile_signature(
    function: Callable[..., Any], tool_name: str, doc: Docstring, namespace: Mapping[str, Any] | None = None
) -> Compiled:
    """The schema and binding of `function`.

    Args:
        namespace: Where annotations written as text are looked up besides the function's globals.

    Raises:
        UnresolvedAnnotation: If an annotation names something not defined yet.
        ToolDefinitionError: If a parameter cannot be expressed; names it and the remedy.
    """
    parameters, contexts = read_parameters(function, tool_name, doc, namespace)
    order = [(each.name, each.kind) for each in parameters]
    parameters = [each for each in parameters if each.name not in contexts]
    properties, definitions, convert, defaults = _compile_simple(parameters) or _compile_with_pydantic(
        tool_name, parameters
    )
    schema = _object_schema(parameters, properties, definitions, defaults)
    uses_pydantic = not isinstance(convert, _SimpleConversion)
    return Compiled(schema, convert, order, contexts, defaults, uses_pydantic)


def read_parameters(
    function: Callable[..., Any], tool_name: str, doc: Docstring, namespace: Mapping[str, Any] | None = None
) -> tuple[list[Parameter], frozenset[str]]:
    """All parameters in order, without those that a partial has fixed, and the names of those that take a context."""
    fixed = _fixed_names(function)
    hints = _Hints(function, tool_name, namespace)
    parameters: list[Parameter] = []
    contexts = set()
    for each in _signature(function, tool_name):
        if each.name in fixed:
            continue
        annotation = hints.resolve(each)
        if is_context(annotation) and each.kind != VAR_KEYWORD:
            contexts.add(each.name)
            parameters.append(Parameter(each.name, each.kind))
        else:
            parameters += _parameters(each, annotation, doc)
    return parameters, frozenset(contexts)


def is_context(annotation: Any) -> bool:
    """`ToolContext`, optional or not, also as a text that cannot be resolved."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].split("|")[0].strip(" '\"") == "ToolContext"
    if typing.get_origin(annotation) in (Union, types.UnionType, Annotated):
        return any(map(is_context, typing.get_args(annotation)))
    return annotation is ToolContext


# ---- the signature --------------------------------------------------------------------------------


def _signature(function: Callable[..., Any], tool_name: str) -> list[InspectParameter]:
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            signature = inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        else:
            signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise ToolDefinitionError(
            f"Tool {tool_name!r}: {function!r} does not tell its parameters ({error}): wrap it in a `def` that does."
        ) from None
    return list(signature.parameters.values())


def _fixed_names(function: Any) -> set[str]:
    """Keywords that a partial has fixed: they are not the model's to choose, and may be secrets."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return names


def base_function(function: Any) -> Any:
    """The function written with `def` or `lambda` inside partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, type):
            initialise = inspect.getattr_static(function, "__init__")
            return function.__new__ if initialise is object.__init__ else initialise
        elif not inspect.isroutine(function) and callable(function):
            function = type(function).__call__
        else:
            return function


class _Hints:
    def __init__(self, function: Any, tool_name: str, namespace: Mapping[str, Any] | None) -> None:
        base = base_function(function)
        self.globals = getattr(base, "__globals__", {})
        self.locals = dict(namespace or {})
        self.tool_name = tool_name

    def resolve(self, parameter: InspectParameter) -> Any:
        """The annotation with all names in it looked up."""
        annotation = parameter.annotation
        if annotation is EMPTY or annotation is None or isinstance(annotation, type):
            return annotation

        def shim() -> None: ...

        shim.__annotations__ = {"annotation": annotation}
        try:
            return typing.get_type_hints(shim, self.globals, self.locals, include_extras=True)["annotation"]
        except NameError as error:
            if isinstance(annotation, str) and is_context(annotation):
                return ToolContext
            raise UnresolvedAnnotation(
                f"Tool {self.tool_name!r}: the annotation of parameter {parameter.name!r} names "
                f"{error.name!r}, which is not defined (yet): define or import it."
            ) from None
        except Exception as error:
            raise ToolDefinitionError(
                f"Tool {self.tool_name!r}: the annotation of parameter {parameter.name!r} ({annotation!r:.100}) "
                f"cannot be read ({type(error).__name__}: {error}): write it as a type."
            ) from None


def _parameters(each: InspectParameter, annotation: Any, doc: Docstring) -> list[Parameter]:
    """One, or the keys of an unpacked TypedDict."""
    if each.kind == VAR_KEYWORD and typing.get_origin(annotation) is typing.Unpack:
        from ._variable_types import typed_dict_keys

        (keys,) = typing.get_args(annotation)
        return [
            Parameter(
                name,
                InspectParameter.KEYWORD_ONLY,
                hint,
                EMPTY if required else _NOT_GIVEN,
                doc.parameters.get(name, ""),
            )
            for name, (hint, required) in typed_dict_keys(keys).items()
        ]
    description = doc.parameters.get(each.name, "")
    if annotation is EMPTY and (said := doc.types.get(each.name)):
        description = f"({said}) {description}".strip()
    inner, texts = _without_texts(annotation)
    default = each.default
    return [Parameter(each.name, each.kind, inner, default, " ".join(texts) or description)]


_NOT_GIVEN = object()
"""Default of an optional key: the function is not passed anything."""


def _without_texts(annotation: Any) -> tuple[Any, list[str]]:
    """`Annotated[int, "text", Field(...)]` -> `Annotated[int, Field(...)]` and the texts. Also PEP 727's `Doc`."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, []
    inner, *metadata = typing.get_args(annotation)
    texts, rest = [], []
    for each in metadata:
        text = each if isinstance(each, str) else getattr(each, "documentation", None)
        if isinstance(text, str):
            texts.append(text)
        else:
            rest.append(each)
    return (Annotated[(inner, *rest)] if rest else inner), texts


# ---- schema ---------------------------------------------------------------------------------------

_Parts = tuple[dict[str, Any], dict[str, Any], Any, dict[str, Any]]


class _SimpleConversion:
    def __init__(self, converts: dict[str, Convert | None], extra: str | None, convert_extra: Convert | None) -> None:
        self.converts = converts
        self.extra = extra
        self.convert_extra = convert_extra

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        extras: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in self.converts:
                convert = self.converts[name]
                values[name] = value if convert is None else convert(value)
            else:
                extras[name] = value if self.convert_extra is None else self.convert_extra(value)
        if extras and self.extra is not None:
            values[self.extra] = extras
        return values


def _compile_simple(parameters: list[Parameter]) -> _Parts | None:
    properties: dict[str, Any] = {}
    converts: dict[str, Convert | None] = {}
    extra, convert_extra = None, None
    for each in parameters:
        found = simple_type(each.annotation)
        if found is not None and each.kind == VAR_POSITIONAL:
            found = list_of(found)
        if found is None or type(each.default).__module__.startswith("pydantic"):
            return None
        properties[each.name], convert = found
        if each.kind == VAR_KEYWORD:
            extra, convert_extra = each.name, convert
        else:
            converts[each.name] = convert
    defaults = {p.name: p.default for p in parameters if p.default is not EMPTY and p.default is not _NOT_GIVEN}
    return properties, {}, _SimpleConversion(converts, extra, convert_extra), defaults


def _compile_with_pydantic(tool_name: str, parameters: list[Parameter]) -> _Parts:
    from ._pydantic_types import compile_with_pydantic

    return compile_with_pydantic(tool_name, parameters)


def _object_schema(
    parameters: list[Parameter], properties: dict[str, Any], definitions: dict[str, Any], defaults: dict[str, Any]
) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    required = []
    extra: Any = False
    for each in parameters:
        schema = dict(properties.get(each.name, {}))
        if each.kind == VAR_KEYWORD:
            extra = schema or True
            continue
        key = schema.pop("x-name", each.name)
        if each.description and "description" not in schema:
            schema["description"] = each.description
        if each.name in defaults:
            if (default := _json_default(defaults[each.name])) is not _NOT_GIVEN:
                schema["default"] = default
        elif each.default is EMPTY and not each.variadic:
            required.append(key)
        shown[key] = schema
    schema = {"type": "object", "properties": shown}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = extra
    if definitions:
        schema["$defs"] = definitions
    return schema


def _json_default(value: Any) -> Any:
    """A default as JSON; `_NOT_GIVEN` if it has no JSON form, and then the schema does not name it."""
    if value is None or type(value) in (str, bool, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else _NOT_GIVEN
    if goes_by_name(type(value)):
        return value.name
    try:
        import json

        from pydantic_core import to_jsonable_python

        form = to_jsonable_python(value)
        json.dumps(form, allow_nan=False)
        return form
    except Exception:
        return _NOT_GIVEN
