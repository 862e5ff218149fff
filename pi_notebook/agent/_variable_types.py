"""Parameters that JSON cannot carry: a model passes the name of a notebook variable. Also numpy and pandas scalars."""

from __future__ import annotations

import datetime
import difflib
import enum
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union

from ._json_form import goes_by_name
from .tool import ToolContext

_MAX_CANDIDATES = 20
_EXTRA_TYPES = frozenset({("sqlite3", "Connection"), ("sqlite3", "Cursor")})


@dataclass(frozen=True, slots=True)
class NotebookVariable:
    """`Annotated[MyClass, NotebookVariable()]`: the model passes the name of a variable that holds a `MyClass`.

    Data types of libraries (DataFrame, ndarray, Figure, ...) need no such mark.
    """


class _ByName:
    """pydantic's handling of one such type: a string in the schema, the variable's value in the call."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.find)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "description": self.description}

    @property
    def description(self) -> str:
        return f"Name of a variable in the notebook that holds a {type_name(self.kind)}."

    def find(self, name: Any) -> Any:
        """The value of variable `name`. Raises ValueError with the names that would do."""
        variables = _variables()
        if isinstance(name, str) and name in variables:
            value = variables[name]
            if isinstance(value, self.kind):
                return value
            problem = f"variable {name!r} holds {type_name(type(value))}, not {type_name(self.kind)}"
        else:
            problem = f"there is no variable {name!r:.100}"
        raise ValueError(f"{problem}; {self._candidates(name, variables)}")

    def _candidates(self, name: Any, variables: Mapping[str, Any]) -> str:
        names = [
            each
            for each, value in list(variables.items())
            if not each.startswith("_") and each not in ("In", "Out") and isinstance(value, self.kind)
        ]
        if not names:
            return f"no variable holds a {type_name(self.kind)}"
        close = difflib.get_close_matches(str(name), names, n=3)
        ordered = [*close, *(each for each in names if each not in close)]
        more = f" and {len(names) - _MAX_CANDIDATES} more" if len(names) > _MAX_CANDIDATES else ""
        return f"variables that hold a {type_name(self.kind)}: {', '.join(ordered[:_MAX_CANDIDATES])}{more}"


class _ByMemberName:
    """pydantic's handling of an enum whose values JSON does not have (`RED = (255, 0, 0)`): by the members' names."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.find)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.kind.__members__), "title": self.kind.__name__}

    def find(self, name: Any) -> enum.Enum:
        """The member of that name, or a member as it is. Raises ValueError with the names that would do."""
        if isinstance(name, self.kind):
            return name
        if isinstance(name, str) and name in self.kind.__members__:
            return self.kind[name]
        raise ValueError(f"expected one of {', '.join(self.kind.__members__)}")


def _variables() -> Mapping[str, Any]:
    context = ToolContext.current()
    return context.host.variables() if context is not None else {}


def type_name(kind: type) -> str:
    """`pandas.DataFrame`, `matplotlib Figure`: library and class, without the modules in between."""
    library = kind.__module__.partition(".")[0]
    return kind.__name__ if library in ("__main__", "builtins") else f"{library}.{kind.__name__}"


def is_mark(metadata: Any) -> bool:
    return metadata is NotebookVariable or isinstance(metadata, NotebookVariable)


def described(annotation: Any, description: str) -> str:
    """`description` with what is said of a parameter that is a variable's name."""
    for each in typing.get_args(annotation)[1:] if typing.get_origin(annotation) is Annotated else ():
        if isinstance(each, _ByName):
            return f"{description} {each.description}".strip()
    return description


def for_pydantic(annotation: Any) -> Any:
    """`annotation` with every type that pydantic does not know, and a model can name, replaced by one it knows."""
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return _for_class(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        inner, *metadata = arguments
        if any(map(is_mark, metadata)):
            if typing.get_origin(inner) in (Union, types.UnionType):
                members = typing.get_args(inner)
                return Union[tuple(each if each is type(None) else _by_name(each) for each in members)]  # noqa: UP007
            return _by_name(inner)
        return Annotated[(for_pydantic(inner), *metadata)]
    if isinstance(origin, type) and _is_data_class(origin):
        return _by_name(origin)
    if origin in (Union, types.UnionType):
        return Union[tuple(map(for_pydantic, arguments))]  # noqa: UP007
    if origin in (list, dict, set, frozenset, tuple):
        replaced = tuple(each if each is ... else for_pydantic(each) for each in arguments)
        return annotation if replaced == arguments else origin[replaced]
    return annotation


def _by_name(kind: Any) -> Any:
    return Annotated[Any, _ByName(typing.get_origin(kind) or kind)]


def _for_class(kind: type) -> Any:
    if kind.__module__ in ("builtins", "typing", "datetime"):
        return kind
    if sys.version_info < (3, 12) and typing.is_typeddict(kind):
        return _typed_dict(kind)
    if goes_by_name(kind):
        return Annotated[kind, _ByMemberName(kind)]
    if (scalar := _scalar(kind)) is not None:
        return scalar
    return _by_name(kind) if _is_data_class(kind) else kind


def _typed_dict(kind: Any) -> Any:
    """Before Python 3.12 pydantic takes only those of typing_extensions, which say which keys are their own."""
    import typing_extensions

    if type(kind).__module__ != "typing":
        return kind
    keys = {
        name: for_pydantic(hint) if required else typing_extensions.NotRequired[for_pydantic(hint)]
        for name, (hint, required) in typed_dict_keys(kind).items()
    }
    made: Any = typing_extensions.TypedDict(kind.__name__, keys)  # type: ignore[misc]
    made.__doc__, made.__module__ = kind.__doc__, kind.__module__
    return made


def typed_dict_keys(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Type of each key and whether it is required; `__required_keys__` is wrong for annotations written as text."""
    keys = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        wrapper = typing.get_origin(hint)
        if wrapper in (typing.Required, typing.NotRequired):
            keys[name] = (typing.get_args(hint)[0], wrapper is typing.Required)
        else:
            keys[name] = (hint, name in kind.__required_keys__)
    return keys


def _scalar(kind: type) -> Any:
    """numpy and pandas scalars: a number or a text for the model, the library's own type for the function."""
    from pydantic import AfterValidator

    numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
    base: Any = None
    if numpy is not None and issubclass(kind, numpy.generic):
        for general, python in ((numpy.bool_, bool), (numpy.integer, int), (numpy.floating, float), (numpy.str_, str)):
            if issubclass(kind, general):
                base = python
    elif pandas is not None:
        base = {pandas.Timestamp: datetime.datetime, pandas.Timedelta: datetime.timedelta}.get(kind)
    return Annotated[base, AfterValidator(kind)] if base is not None else None


def _is_data_class(kind: type) -> bool:
    """A class of an installed library that pydantic has no schema for: DataFrame, ndarray, Figure, an estimator."""
    if (kind.__module__, kind.__name__) in _EXTRA_TYPES:
        return True
    if _knows_pydantic(kind):
        return False
    library = sys.modules.get(kind.__module__.partition(".")[0])
    path = getattr(library, "__file__", None) or next(iter(getattr(library, "__path__", ())), "")
    return "site-packages" in path or "dist-packages" in path


def _knows_pydantic(kind: type) -> bool:
    if hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_core_schema__"):
        return True
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation

    try:
        TypeAdapter(kind).json_schema()
    except PydanticUndefinedAnnotation:
        return True
    except PydanticUserError:
        return False
    except Exception:
        return False
    return True
