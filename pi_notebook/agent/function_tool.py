"""`@tool`: a Python function becomes a `Tool`, and stays the function that it was."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast, overload

from ..ai.abort import AbortSignal
from ..errors import ToolDefinitionError
from . import tool as contract
from ._docstrings import read_docstring
from ._figures import OwnTable
from ._invocation import Unfinished, finished, plain_result
from ._signature import BoundCall, Compiled, UnresolvedAnnotation, base_function, compile_signature
from ._tracebacks import source_name
from .registry import registry
from .results import is_simple, to_tool_result
from .tool import Approval, ExecutionMode, OnUpdate, Tool, ToolContext, ToolResult
from .workers import run_in_worker

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .arguments import Validator
    from .output import Captured

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS = (
    "name", "label", "description", "parameters", "prepare_arguments", "execution_mode", "constrained_sampling",
    "approval", "thread", "executor", "timeout",
)  # fmt: skip


class FunctionTool(Tool, Generic[P, R]):
    """A tool made of a function; made by `tool`, which documents the options.

    Attributes:
        function: What was decorated.
        defined_at: File and line of the function; ("", 0) if unknown.

    Calling it calls the function. A parameter annotated `ToolContext` is handed in and hidden from the model.
    """

    def __init__(self, function: Callable[P, R], namespace: Mapping[str, Any] | None = None, **options: Any) -> None:
        self.function = function
        self.options = options
        self.thread: Literal["worker"] | None = options.get("thread")
        self.executor: Executor | None = options.get("executor")
        self.in_class_body = namespace is not None and "__qualname__" in namespace and "__module__" in namespace
        self.unbound = isinstance(function, classmethod)
        self._asynchronous = _is_async(function)
        base = base_function(function)
        doc = read_docstring(_docstring(function))
        self._doc = doc
        self.name = _default_name(function) if options.get("name") is None else options["name"]
        self.label = options.get("label") or ""
        self.prepare_arguments = options.get("prepare_arguments")
        self.execution_mode = options.get("execution_mode")
        self.constrained_sampling = options.get("constrained_sampling")
        self.approval = options.get("approval", False)
        self.timeout = options.get("timeout")
        code = getattr(base, "__code__", None)
        self.defined_at = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
        self.__post_init__()
        self._check_options()
        self._compiled: Compiled | None = None
        if not self.unbound:
            try:
                self._compiled = self._compile(namespace)
            except UnresolvedAnnotation:  # a model of a later cell: at first use
                pass
            functools.update_wrapper(self, function, updated=())
            if isinstance(options.get("parameters"), Mapping):
                self._refuse_unusable_schema()
        self.description = options.get("description") or doc.description or self._usage()

    # ---- definition ------------------------------------------------------------------------------

    def _check_options(self) -> None:
        if self.thread not in (None, "worker"):
            raise ToolDefinitionError(f"Tool {self.name!r}: thread must be 'worker' or None, not {self.thread!r}.")
        if self._asynchronous and (self.thread or self.executor is not None):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: an `async def` runs on the agent's loop: drop thread= and executor=, or make it "
                f"a plain `def`."
            )
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: executor must have submit(), as a concurrent.futures.Executor has; for Dask pass "
                f"client.get_executor()."
            )
        if not isinstance(self.approval, bool) and (not callable(self.approval) or _is_async(self.approval)):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: approval must be True, False or a plain function of the arguments, "
                f"not {self.approval!r:.100}."
            )
        for option in ("name", "description"):
            given = self.options.get(option)
            if given is not None and not isinstance(given, str):
                raise ToolDefinitionError(f"Tool {self.name!r}: {option} must be text, not {given!r:.100}.")

    def _compile(self, namespace: Mapping[str, Any] | None = None) -> Compiled:
        given = self.options.get("parameters")
        if given is None:
            return compile_signature(self.function, self.name, self._doc, namespace)
        from ._given_parameters import compile_given

        return compile_given(self.function, self.name, given, self._doc, namespace)

    def _usage(self) -> str:
        return self.name if self.unbound else f"{self.name}{self.signature}"

    @property
    def compiled(self) -> Compiled:
        """The signature, compiled at the latest now.

        Raises:
            ToolDefinitionError: An annotation names something that is still not defined.
        """
        if self.unbound:
            raise ToolDefinitionError(f"Tool {self.name!r} is a method: give the agent the one of an object.")
        if self._compiled is None:
            try:
                self._compiled = self._compile()
            except UnresolvedAnnotation as error:
                raise ToolDefinitionError(str(error)) from None
        return self._compiled

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.compiled.schema

    @property
    def parameters(self) -> Any:
        return self.schema

    @cached_property
    def validator(self) -> Validator:
        return self._compile_validator(for_pydantic=self.compiled.uses_pydantic)

    @property
    def cancellable(self) -> bool:  # type: ignore[override]
        return self._asynchronous

    @property
    def is_resolved(self) -> bool:
        """Whether the schema is known: no annotation waits for a later cell."""
        return self._compiled is not None

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @property
    def runs_on(self) -> str:  # type: ignore[override]
        """`loop`, `plain` (the host's main thread, if it has one), `worker` or `executor`."""
        if self._asynchronous:
            return "loop"
        return "executor" if self.executor is not None else self.thread or "plain"

    @property
    def where(self) -> str:
        """Where the function is defined, as people say it: `Cell In[3], line 2`."""
        filename, line = self.defined_at
        return f"{source_name(filename)}, line {line}" if filename else "built in"

    # ---- as a function ---------------------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        contexts = self._compiled.contexts if self._compiled is not None else frozenset()
        if contexts:
            given = self.signature.bind_partial(*args, **kwargs).arguments
            context = ToolContext.current() or ToolContext(tool_name=self.name)
            kwargs.update({name: context for name in contexts if name not in given})
        return self.function(*args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        """The body of a class is done: what was decorated in it is a method, and a tool once it has an object."""
        if self.in_class_body and not isinstance(self.function, staticmethod):
            self.unbound = True

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if self.in_class_body and not self.unbound and isinstance(instance, type):  # `@classmethod` above `@tool`
            return FunctionTool(types.MethodType(self.function, instance), **{**self.options, "name": self.name})
        if not self.unbound or (instance is None and not isinstance(self.function, classmethod)):
            return self
        bound = cast(Any, self.function).__get__(instance, owner)
        return FunctionTool(bound, **{**self.options, "name": self.name})

    def __reduce__(self) -> Any:
        """Pickled as the function, which may mention itself or other tools and must not take an executor along."""
        return _same, (self.function,)

    def __repr__(self) -> str:
        return f"<tool {self._usage()}>"

    # ---- as a tool -------------------------------------------------------------------------------

    def call(self, /, **arguments: Any) -> ToolResult:
        """As `Tool.call`; a plain `def` runs on this very thread. Python values will do: dates, models, tables."""
        from ._person_calls import call_for_person

        return call_for_person(self, arguments)

    def bind(self, arguments: dict[str, Any]) -> BoundCall:
        return self.compiled.bind(self.name, arguments)

    async def execute(
        self, tool_call_id: str, params: Any, signal: AbortSignal | None = None, on_update: OnUpdate | None = None
    ) -> ToolResult:
        """Run the function once. `params` is what `bind` gave, or a dict of checked arguments."""
        context = ToolContext.current()
        if context is not None and context.tool_call_id == tool_call_id and context.tool_name == self.name:
            return await self._execute(params, context)
        context = ToolContext(tool_call_id, self.name, signal, on_update, context.host if context else None)
        token = contract._current.set(context)
        try:
            return await self._execute(params, context)
        finally:
            contract._current.reset(token)

    async def _execute(self, params: Any, context: ToolContext) -> ToolResult:
        call = params if isinstance(params, BoundCall) else self.bind(params)
        if self.runs_on in ("plain", "worker"):
            run = functools.partial(plain_result, self.function, call, context)
            result = await (run_in_worker(run) if self.thread else context.host.run_plain(run, context))
            if isinstance(result, ToolResult):
                return result
            value, captured = await self._finish(result, context)
        else:
            value, captured = await self._run(call, context)
        if is_simple(value) and not captured.displays:
            return to_tool_result(value, captured)
        return await run_in_worker(functools.partial(to_tool_result, value, captured))

    async def _run(self, call: BoundCall, context: ToolContext) -> tuple[Any, Captured]:
        """The function's value, and what it wrote."""
        if self.runs_on == "executor":
            from .executors import run_in_executor

            assert self.executor is not None
            with context.host.capture(context) as captured:
                return await run_in_executor(self.executor, self.function, call, context, captured), captured
        with OwnTable(), context.host.capture(context) as captured:
            return await finished(call.invoke(self.function, context), context), captured

    async def _finish(self, unfinished: Unfinished, context: ToolContext) -> tuple[Any, Captured]:
        captured = unfinished.captured
        with OwnTable(), context.host.capture(context) as more:
            value = await finished(unfinished.value, context)
        captured.write(more.text)
        captured.displays.extend(more.displays)
        return value, captured


def _same(function: Any) -> Any:
    return function


def _is_async(function: Any) -> bool:
    if isinstance(function, functools.partial):
        return _is_async(function.func)
    if isinstance(function, classmethod | staticmethod):
        return _is_async(function.__func__)
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _default_name(function: Any) -> str:
    base = function
    while isinstance(base, functools.partial):
        base = base.func
    name = getattr(base, "__name__", None) or type(base).__name__
    if name == "<lambda>":
        raise ToolDefinitionError("A lambda has no name that a model could call: pass name=.")
    if not isinstance(function, functools.partial) or re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        return str(name)
    return str(name).strip("<>")


def _docstring(function: Any) -> str | None:
    """Its own docstring, not that of its type (`partial`, `object`)."""
    if isinstance(function, functools.partial):
        return _docstring(function.func)
    if inspect.ismethod(function) and isinstance(function.__self__, type):
        # `getdoc` would look for an inherited one under the method's name, and so come back here without end.
        return inspect.cleandoc(function.__doc__ or "")
    if inspect.isroutine(function) or isinstance(function, type | classmethod | staticmethod):
        return inspect.getdoc(function)
    own: str | None = type(function).__call__.__doc__
    return own or inspect.getdoc(type(function))


class ToolDecorator:
    """See `tool`."""

    @overload
    def __call__(self, function: Callable[P, R], /, **options: Any) -> FunctionTool[P, R]: ...

    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        label: str | None = None,
        description: str | None = None,
        parameters: Any = None,
        prepare_arguments: Callable[[Any], Any] | None = None,
        execution_mode: ExecutionMode | None = None,
        constrained_sampling: Literal["prefer", "require"] | None = None,
        approval: Approval = False,
        thread: Literal["worker"] | None = None,
        executor: Any = None,
        timeout: float | None = None,
    ) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...

    def __call__(self, /, *positional: Any, **options: Any) -> Any:
        """Make a tool of a function: `@tool`, `@tool(approval=True)` or `tool(function, name="f")`.

        Args:
            name: What the model calls; the function's name if not given.
            label: Display name.
            description: When to use it; the docstring without its sections if not given.
            parameters: JSON Schema or pydantic model instead of the signature.
            prepare_arguments: Shim on the raw arguments before validation.
            execution_mode: `sequential` or `parallel`.
            constrained_sampling: `prefer` or `require` a provider's strict mode.
            approval: True, or a function of the arguments (dict) that returns whether to ask a person, or why.
            thread: `worker` runs it on a thread of its own, beside other calls.
            executor: Any `concurrent.futures.Executor`; for Dask `client.get_executor()`.
            timeout: Seconds.

        Raises:
            ToolDefinitionError: In one line: an unknown option, a parameter that has no JSON form, a bad name.
        """
        _refuse_misuse(positional, options)
        namespace = _caller_locals()
        if not positional:
            return lambda function: _define(function, options, namespace)
        return _define(positional[0], options, namespace)

    def unregister(self, name: str) -> None:
        """Take the tool `name` out of the set of decorated tools. Raises KeyError, naming those there are."""
        registry.unregister(name)

    def __repr__(self) -> str:
        return "<the decorator pi_notebook.tool>"


tool = ToolDecorator()
"""The decorator `@tool`. Decorated tools are in `registry.registry` until they are deleted or unregistered."""


def _define(function: Any, options: dict[str, Any], namespace: Mapping[str, Any] | None) -> FunctionTool[Any, Any]:
    if isinstance(function, FunctionTool):
        if options:
            function = FunctionTool(function.function, namespace, **{**function.options, **options})
    elif callable(function) or isinstance(function, classmethod):
        function = FunctionTool(function, namespace, **options)
    else:
        raise ToolDefinitionError(f"@tool makes tools of functions, not of {function!r:.100}.")
    if not function.in_class_body:
        registry.add(function)
    return cast("FunctionTool[Any, Any]", function)


def _refuse_misuse(positional: tuple[Any, ...], options: dict[str, Any]) -> None:
    for option in options:
        if option not in OPTIONS:
            close = difflib.get_close_matches(option, OPTIONS, n=1, cutoff=0.6)
            hint = f" Did you mean {close[0]}=?" if close else f" Known: {', '.join(OPTIONS)}."
            raise ToolDefinitionError(f"@tool has no option {option!r}.{hint}")
    if positional and isinstance(positional[0], str):
        raise ToolDefinitionError(f"@tool takes its options by name: @tool(name={positional[0]!r}).")
    if len(positional) > 1:
        raise ToolDefinitionError("@tool takes one function; everything else is given by name, as in @tool(name=...).")


def _caller_locals() -> Mapping[str, Any] | None:
    """The local names where `@tool` stands inside a function, for annotations written as text."""
    frame = sys._getframe(2)
    return None if frame.f_locals is frame.f_globals else dict(frame.f_locals)
