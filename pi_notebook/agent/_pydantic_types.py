"""Schemas and conversions by pydantic, for all annotations that `_simple_types` leaves to it."""

from __future__ import annotations

import copy
import inspect
import typing
import warnings
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from ..errors import ToolDefinitionError
from ._signature import _NOT_GIVEN, EMPTY, VAR_KEYWORD, VAR_POSITIONAL, Parameter, UnresolvedAnnotation
from ._variable_types import described, for_pydantic, is_mark


class _Schema(GenerateJsonSchema):
    """Without the titles that pydantic makes up for fields: a model pays for them and learns nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        if any(isinstance(value, bytes) for value in schema["expected"]):  # pydantic would take no text for them
            return self.handle_invalid_for_json_schema(schema, "bytes in a Literal")
        return super().literal_schema(schema)


class Conversion:
    """Checked arguments -> values by parameter name."""

    def __init__(self, model: type[BaseModel], fields: dict[str, str], keys: set[str], extra: str | None) -> None:
        self.model = model
        self.fields = fields
        self.keys = keys
        self.extra = extra

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from .arguments import validate_with_pydantic

        given = {key: value for key, value in arguments.items() if key in self.keys}
        extras = {key: value for key, value in arguments.items() if key not in self.keys}
        if extras and self.extra is not None:
            given[self.extra] = extras
        checked = validate_with_pydantic(tool_name, self.model, given)
        return {self.fields[name]: getattr(checked, name) for name in checked.model_fields_set}


def compile_with_pydantic(
    tool_name: str, parameters: list[Parameter]
) -> tuple[dict[str, Any], dict[str, Any], Conversion, dict[str, Any]]:
    """The schema of each parameter, shared definitions, the conversion, and the defaults.

    A property that is not named like its parameter (`Field(alias=)`) says so as `x-name`.

    Raises:
        UnresolvedAnnotation: A model in an annotation refers to something not defined yet.
        ToolDefinitionError: Names the parameter that has no JSON form.
    """
    fields: dict[str, Any] = {}
    keys: dict[str, str] = {}
    defaults: dict[str, Any] = {}
    for number, each in enumerate(parameters):
        try:
            annotation, key = _field_annotation(each, defaults)
        except (AttributeError, TypeError) as error:  # `x: 3`: no type at all
            raise _refusal(tool_name, each, TypeError(str(error))) from None
        keys[each.name] = key
        optional = each.variadic or each.name in defaults or each.default is _NOT_GIVEN
        fields[f"p{number}"] = (annotation, Field(default_factory=lambda: None) if optional else ...)
    schema, model = _build(tool_name, parameters, fields)
    properties = {}
    for each in parameters:
        properties[each.name] = schema.get("properties", {}).get(keys[each.name], {})
        if each.kind == VAR_KEYWORD:
            values = properties[each.name].get("additionalProperties", True)
            properties[each.name] = {} if values is True else values
        elif keys[each.name] != each.name:
            properties[each.name] = {**properties[each.name], "x-name": keys[each.name]}
    extra = next((each.name for each in parameters if each.kind == VAR_KEYWORD), None)
    names = {f"p{number}": each.name for number, each in enumerate(parameters)}
    known = {keys[each.name] for each in parameters if each.kind != VAR_KEYWORD}
    return properties, schema.get("$defs", {}), Conversion(model, names, known, extra), defaults


def _field_annotation(each: Parameter, defaults: dict[str, Any]) -> tuple[Any, str]:
    """The annotation for pydantic, and the name of the argument. Notes the default."""
    annotation = Any if each.annotation is EMPTY else each.annotation
    metadata: list[Any] = []
    if typing.get_origin(annotation) is Annotated:
        annotation, *metadata = typing.get_args(annotation)
    default = each.default
    if isinstance(default, FieldInfo):  # def f(x: int = Field(3, ge=1))
        metadata.append(default)
        default = EMPTY
    infos = []
    for item in metadata:
        if isinstance(item, FieldInfo):
            if default is EMPTY:
                default = _field_default(item)
            item = _without_default(item)
        infos.append(item)
    if default is not EMPTY and default is not _NOT_GIVEN:
        defaults[each.name] = default
    alias = next((item.alias for item in infos if isinstance(item, FieldInfo) and item.alias), None)
    marks = [item for item in metadata if is_mark(item)]
    annotation = for_pydantic(Annotated[(annotation, *marks)] if marks else annotation)
    said = next((item.description for item in infos if isinstance(item, FieldInfo) and item.description), None)
    if description := described(annotation, said or each.description):
        infos.append(Field(description=description))
    if each.kind == VAR_POSITIONAL:
        annotation = list[annotation]  # type: ignore[valid-type]
    elif each.kind == VAR_KEYWORD:
        annotation = dict[str, annotation]  # type: ignore[valid-type]
    if alias is None:
        infos.append(Field(alias=each.name))
    return Annotated[(annotation, *infos)], alias or each.name


def _field_default(info: FieldInfo) -> Any:
    if info.default is not PydanticUndefined and info.default is not ...:
        return info.default
    return info.get_default(call_default_factory=True) if info.default_factory is not None else EMPTY


def _without_default(info: FieldInfo) -> FieldInfo:
    """The function is given its default by us, and pydantic takes only one for a field."""
    info = copy.copy(info)
    info.default = PydanticUndefined
    info.default_factory = None
    info._attributes_set = {
        name: value for name, value in info._attributes_set.items() if name not in ("default", "default_factory")
    }
    return info


def _build(tool_name: str, parameters: list[Parameter], fields: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    for each in parameters:
        if each.annotation is typing.Self or typing.get_origin(each.annotation) is type:
            raise _refusal(tool_name, each, TypeError())
    try:
        return _model(tool_name, fields)
    except Exception as error:
        for each, name in zip(parameters, fields, strict=True):
            try:
                _model(tool_name, {name: fields[name]})
            except Exception as found:
                raise _refusal(tool_name, each, found) from None
        raise ToolDefinitionError(f"Tool {tool_name!r}: its parameters have no JSON Schema: {error}") from None


def _model(tool_name: str, fields: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of fields and defaults, which are ours
        model: Any = create_model(tool_name, __config__=ConfigDict(protected_namespaces=()), **fields)
        return model.model_json_schema(schema_generator=_Schema), model


def _refusal(tool_name: str, each: Parameter, error: Exception) -> Exception:
    if isinstance(error, PydanticUndefinedAnnotation) or getattr(error, "code", None) == "class-not-fully-defined":
        missing = getattr(error, "name", None)
        what = f"names {missing!r}, which" if missing else "refers to a class that"
        return UnresolvedAnnotation(
            f"Tool {tool_name!r}: the annotation of parameter {each.name!r} {what} is not defined (yet): "
            f"define or import it."
        )
    shown = inspect.formatannotation(each.annotation)
    if getattr(error, "code", None) == "typed-dict-version":
        return ToolDefinitionError(
            f"Tool {tool_name!r}: parameter {each.name!r} ({shown:.100}) holds a typing.TypedDict, which pydantic "
            f"takes only from Python 3.12 on: import TypedDict from typing_extensions."
        )
    if isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema | PydanticUserError | TypeError):
        return ToolDefinitionError(
            f"Tool {tool_name!r}: parameter {each.name!r} ({shown:.100}) has no JSON form, so a model cannot fill it "
            f"in: use a dataclass, a pydantic model or plain types, or Annotated[..., NotebookVariable()] to let the "
            f"model name a variable."
        )
    reason = str(error).partition("\n")[0]
    return ToolDefinitionError(f"Tool {tool_name!r}: parameter {each.name!r} ({shown:.100}) cannot be used: {reason}")
