"""The tool contract: Tool, ToolResult, ToolContext, and the Host that surrounds them."""

from __future__ import annotations

import contextvars
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from ..ai.abort import AbortSignal
from ..ai.messages import ImageContent, TextContent, Usage, UserContent
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .arguments import Validator
    from .output import Captured

T = TypeVar("T")
ExecutionMode: TypeAlias = Literal["sequential", "parallel"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(slots=True)
class ToolResult:
    """What a tool call came to.

    Args:
        content: Text and image blocks for the model; a plain string is one text block.
        details: Any object, for the view and for code; never sent to a model.
        usage: Tokens that the tool itself spent on models.
        added_tool_names: Tools that this call made available.
        terminate: True asks the loop to stop after this batch; it does so only if every result of the batch asks.
        is_error: The call failed and `content` says how.
        duration_ms: Time in the execute phase; None if it never began.
        value: The Python object that the tool returned, whole.
        error: The exception behind `is_error`, if there was one.
        displayed: Text and images that the tool displayed or plotted besides returning a value, for a person.
    """

    content: Sequence[UserContent] = ()
    details: Any = None
    usage: Usage | None = None
    added_tool_names: Sequence[str] = ()
    terminate: bool | None = None
    is_error: bool = False
    duration_ms: int | None = None
    value: Any = field(default=None, kw_only=True, repr=False)
    error: BaseException | None = field(default=None, kw_only=True, repr=False)
    displayed: Sequence[UserContent] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.content, str):
            self.content = (TextContent(self.content),)
        elif isinstance(self.content, TextContent | ImageContent):
            self.content = (self.content,)
        else:
            self.content = tuple(self.content or ())

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block.text for block in self.content if block.type == "text")

    @classmethod
    def failure(cls, text: str, error: BaseException | None = None) -> ToolResult:
        """An error result with `text` for the model."""
        return cls((TextContent(text),), details={}, is_error=True, error=error)


OnUpdate: TypeAlias = Callable[[ToolResult], None]
Execute: TypeAlias = Callable[[str, Any, AbortSignal | None, OnUpdate | None], Awaitable[ToolResult]]
Approval: TypeAlias = bool | Callable[[dict[str, Any]], bool | str]


@dataclass(slots=True, frozen=True)
class Progress:
    """`details` of an update that tells how far a tool is. `total` None: unknown. Any unit."""

    done: float
    total: float | None = None
    text: str = ""


@dataclass(slots=True, frozen=True)
class ConsoleText:
    """`details` of an update that carries a piece of what a tool wrote; pieces are to be joined."""

    text: str


@dataclass(eq=False)
class Tool:
    """Something a model can call. Functions become one by `@tool`.

    Args:
        name: `[A-Za-z0-9_-]{1,64}`.
        description: When to use it; the model reads this.
        parameters: JSON Schema of an object, or a pydantic model class. Compiled once; must not change afterwards.
        execute: `async (tool_call_id, params, signal, on_update) -> ToolResult`. `params` is a dict, or an instance of
            the pydantic model. It fails by raising. What else it returns is made into a result.
        label: Display name; `name` if empty.
        prepare_arguments: Shim on the raw arguments before validation, for models with habits of their own.
        execution_mode: `sequential` makes every batch with this tool sequential; None leaves it to the agent.
        constrained_sampling: Ask the provider to hold the model to the schema: `prefer`, or `require` and fail else.
        approval: True asks a person before each run; a function of the arguments (a dict) returns whether to ask, or
            the reason for asking; one that raises asks.
        timeout: Seconds for the execute phase; the call then fails like on abort.

    Raises:
        ToolDefinitionError: If the name or the schema cannot be used.
    """

    name: str
    description: str
    parameters: Any
    execute: Execute = field(repr=False)
    label: str = ""
    prepare_arguments: Callable[[Any], Any] | None = field(default=None, repr=False)
    execution_mode: ExecutionMode | None = None
    constrained_sampling: Literal["prefer", "require"] | None = None
    approval: Approval = False
    timeout: float | None = None
    cancellable: ClassVar[bool] = True
    """Whether cancelling `execute` ends it; a call on a thread only hears the signal."""
    runs_on: ClassVar[str] = "loop"
    """`loop`, `plain` (where the host runs plain functions, in turn), `worker` or `executor`."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.execution_mode not in (None, "sequential", "parallel"):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: execution_mode must be 'sequential', 'parallel' or None, "
                f"not {self.execution_mode!r}."
            )
        if self.constrained_sampling in (False, "off"):
            self.constrained_sampling = None
        if self.constrained_sampling not in (None, "prefer", "require"):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: constrained_sampling must be 'prefer', 'require' or None, "
                f"not {self.constrained_sampling!r}."
            )
        if not isinstance(self.label, str):
            raise ToolDefinitionError(f"Tool {self.name!r}: label must be text, not {self.label!r:.100}.")
        if self.prepare_arguments is not None and not callable(self.prepare_arguments):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: prepare_arguments must be a function of the raw arguments, "
                f"not {self.prepare_arguments!r:.100}."
            )
        is_time = isinstance(self.timeout, int | float) and not isinstance(self.timeout, bool) and self.timeout > 0
        if self.timeout is not None and not is_time:
            raise ToolDefinitionError(f"Tool {self.name!r}: timeout must be seconds above 0, not {self.timeout!r}.")
        self.label = self.label or self.name
        if isinstance(vars(self).get("parameters"), Mapping):  # a FunctionTool compiles its own, when it can
            self._refuse_unusable_schema()

    def _refuse_unusable_schema(self) -> None:
        """Here, where it is written, and not in the first call or by the provider."""
        schema = self.schema
        problem = ""
        if schema.get("type", "object") != "object":
            problem = f"Its schema is of type {schema['type']!r}: arguments are an object, so wrap it in one"
        elif not isinstance(schema.get("properties", {}), Mapping):
            problem = "The 'properties' of its schema must be a dict of name to schema"
        elif not isinstance(schema.get("required", []), Sequence) or isinstance(schema.get("required"), str):
            problem = "The 'required' of its schema must be a list of names"
        if problem:
            raise ToolDefinitionError(f"Tool {self.name!r} cannot be used. {problem}.")
        self.validator  # noqa: B018 (compiling it finds the rest)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the parameters, made once."""
        if isinstance(self.parameters, Mapping):
            return dict(self.parameters)
        schema: dict[str, Any] = self.parameters.model_json_schema()
        return schema

    @cached_property
    def validator(self) -> Validator:
        return self._compile_validator(for_pydantic=not isinstance(self.parameters, Mapping))

    def _compile_validator(self, *, for_pydantic: bool) -> Validator:
        from .arguments import compile_schema

        try:
            return compile_schema(self.schema, for_pydantic=for_pydantic)
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"Tool {self.name!r} cannot be used. {error}") from None

    def check(self, raw: Any) -> dict[str, Any]:
        """Coerce and validate raw arguments; returns a new dict in JSON form.

        Raises:
            ToolArgumentsError: With every error path, in words made for the model.
        """
        return self.validator.validate(self.name, raw)

    def bind(self, arguments: dict[str, Any]) -> Any:
        """Checked arguments as `execute` takes them. Raises `ToolArgumentsError` where they do not fit."""
        if isinstance(self.parameters, Mapping):
            return arguments
        from .arguments import validate_with_pydantic

        return validate_with_pydantic(self.name, self.parameters, arguments)

    def wants_approval(self, arguments: dict[str, Any]) -> bool | str:
        """Whether to ask a person, or why. An `approval` function that raises asks, and says so."""
        if isinstance(self.approval, bool):
            return self.approval
        try:
            answer = self.approval(arguments)
        except Exception as error:
            return f"its approval rule failed: {type(error).__name__}: {error}"
        return answer if isinstance(answer, str) and answer else bool(answer)

    def describe(self, api: str | None = None) -> Any:
        """Without `api` a rich object for people; with the name of an API or a provider exactly the JSON that it is
        sent for this tool (for Google the item of `functionDeclarations`)."""
        from .describe import ToolDescription, wire_description

        return ToolDescription(self) if api is None else wire_description(self, api)

    def call(self, /, **arguments: Any) -> ToolResult:
        """Run one call through all phases, without a model and without asking (a person called it).

        Works inside a running event loop too. Never raises for what the tool does: see `ToolResult.is_error`.
        """
        from .single_call import call_tool

        return call_tool(self, arguments)


def check_name(name: str) -> None:
    """Raise `ToolDefinitionError` unless `name` is one that every provider takes."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"Tool name {name!r} cannot be used: providers take 1 to 64 letters, digits, '_' and '-'. "
            f"Give it another with name=."
        )


class Host:
    """What surrounds the tools of an agent; the notebook hands in its own, this one serves plain scripts.

    Attributes:
        handed: Objects that a person passed in code where a model would name a variable, by the name they go by.
    """

    handed: Mapping[str, Any] = MappingProxyType({})

    async def run_plain(self, function: Callable[[], T], context: ToolContext) -> T:
        """Run a plain `def` tool (no thread of its own asked for) and return its value, or raise what it raised."""
        from .workers import run_in_worker

        return await run_in_worker(function)

    def begun(self, context: ToolContext) -> None:
        """A call's own code begins now. Told once, on whatever thread."""

    def breathe(self) -> None:
        """Called at each update, on the tool's own thread: a chance to let in what waits for that thread."""

    def variables(self) -> Mapping[str, Any]:
        """The live variables that a tool's parameter may name; here those of the script."""
        return vars(sys.modules["__main__"])

    def capture(self, context: ToolContext) -> AbstractContextManager[Captured]:
        """Collect what is printed and displayed inside, in every thread that runs in a copy of this context.

        Printed text is passed on to `context.console` as it comes.
        """
        from .output import capture_output

        return capture_output(context)


class Console:
    """A text file whose writes stream into the row of the call: `print(..., file=ctx.console)`."""

    __slots__ = ("_context",)

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def write(self, text: str) -> int:
        if text:
            self._context._emit(ToolResult((), ConsoleText(text)))
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return False


class ToolContext:
    """A tool's line to its surroundings: declare a parameter `ctx: ToolContext` and it is handed in.

    Usable from any thread. Updates after the call has ended are dropped.
    """

    __slots__ = (
        "__weakref__",
        "_add_tool",
        "_on_begin",
        "_on_update",
        "added_tool_names",
        "console",
        "host",
        "signal",
        "tool_call_id",
        "tool_name",
    )

    def __init__(
        self,
        tool_call_id: str = "",
        tool_name: str = "",
        signal: AbortSignal | None = None,
        on_update: OnUpdate | None = None,
        host: Host | None = None,
        add_tool: Callable[[Tool], None] | None = None,
    ) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name
        self.signal = signal or AbortSignal()
        self.host = host or Host()
        self.console = Console(self)
        self.added_tool_names: list[str] = []
        self._on_update = on_update
        self._on_begin: Callable[[], None] | None = None
        self._add_tool = add_tool

    @staticmethod
    def current() -> ToolContext | None:
        """The context of the call that this code runs in, also in threads that copied the context."""
        return _current.get()

    def _emit(self, partial: ToolResult) -> None:
        if self._on_update is not None:
            self._on_update(partial)
        self.host.breathe()

    def begin(self) -> None:
        """The call's own code begins now; until here it waited for its turn. Only the first time counts."""
        on_begin, self._on_begin = self._on_begin, None
        if on_begin is not None:
            on_begin()
            self.host.begun(self)

    def update(self, value: Any) -> None:
        """Show `value` (anything a tool may return) as the result so far."""
        from .results import to_tool_result

        self._emit(to_tool_result(value))

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Show how far the tool is: `done` of `total`, in any unit, with a word about the step."""
        self._emit(ToolResult((), Progress(done, total, text)))

    def track(self, iterable: Iterable[T], text: str = "", total: float | None = None) -> Iterator[T]:
        """Yield from `iterable`, moving the progress bar; raises `Aborted` between items once the run is aborted."""
        if total is None:
            try:
                total = len(iterable)  # type: ignore[arg-type]
            except TypeError:
                total = None
        done = 0
        self.progress(done, total, text)
        for item in iterable:
            self.signal.raise_if_aborted()
            yield item
            done += 1
            self.progress(done, total, text)

    def add_tool(self, tool: Tool) -> None:
        """Offer `tool` to the model from the next request on. Raises `ToolDefinitionError` for what is none."""
        if not isinstance(tool, Tool):
            raise ToolDefinitionError(
                f"add_tool takes a tool, not {tool!r:.100}: decorate the function with @tool, or pass tool(function)."
            )
        self.added_tool_names.append(tool.name)
        if self._add_tool is not None:
            self._add_tool(tool)


_current: contextvars.ContextVar[ToolContext | None] = contextvars.ContextVar("pi_notebook_tool_context", default=None)
