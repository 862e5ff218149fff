"""One batch of tool calls: prepare -> (a person's approval) -> execute -> finalize, in order or side by side.

Each call ends in exactly one tool-result message, whatever happens; messages come in the order of the calls.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from ..ai.abort import AbortController, AbortSignal
from ..ai.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from ..errors import ToolError
from . import tool as contract
from ._watching import Clock, Emit, Updates, as_result, until_abort
from .events import (
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from .hooks import (
    AfterToolCall,
    AfterToolCallContext,
    AgentContext,
    Approve,
    BeforeToolCall,
    BeforeToolCallContext,
    Decision,
    Question,
    settle,
)
from .tool import ExecutionMode, Host, Tool, ToolContext, ToolResult

T = TypeVar("T")
CANCEL_AFTER = 0.3
"""Seconds after an abort (or a tool's timeout) until an async tool is cancelled."""
ABANDON_AFTER = 0.6
"""Seconds after an abort (or a tool's timeout) until a call that still runs is left alone and its result dropped."""

ABORTED = "Not run: the run was stopped before this call began."
INTERRUPTED = "Stopped while it ran: the run was stopped. What it had done by then may stay done."
ABANDONED = (
    "Abandoned: the run was stopped and the tool did not stop within {seconds} s. "
    "It may still be running; its result will not be used."
)
TRUNCATED = (
    "Not run: the reply hit the output token limit, so the arguments of {name!r} may be cut off. "
    "Call it again with complete (shorter) arguments."
)
NOBODY = "Blocked: this tool needs a person's approval and nobody could be asked."


@dataclass(slots=True)
class Batch:
    """What a batch came to. `terminate`: every result asked the loop to stop."""

    messages: list[ToolResultMessage]
    terminate: bool


@dataclass(slots=True)
class Prepared:
    """A call that may run: `params` is what `execute` takes, made from `args` (JSON form)."""

    call: ToolCall
    tool: Tool
    args: dict[str, Any]
    params: Any
    context: ToolContext


@dataclass
class Finalized:
    """A call that has ended; `args` are those that ran or would have."""

    call: ToolCall
    result: ToolResult
    args: Any

    @cached_property
    def message(self) -> ToolResultMessage:
        result = self.result
        return ToolResultMessage(
            self.call.id,
            self.call.name,
            result.content,
            result.details,
            result.usage,
            result.added_tool_names,
            result.is_error,
            result.duration_ms,
        )


class ToolCalls:
    """Runs the tool calls of one assistant message. Made anew for each batch.

    Args:
        context: The run's context; tools are found in `context.tools`.
        message: The reply that holds the calls.
        emit: Told of every event, awaited.
        signal: Aborting it starts no more calls and ends the running ones (`CANCEL_AFTER`, `ABANDON_AFTER`).
        approve: A person's (or a rule's) word on each call; None blocks tools that ask for approval.
        ask: False runs tools that ask for approval unasked, for a call that a person made.
    """

    def __init__(
        self,
        context: AgentContext,
        message: AssistantMessage,
        emit: Emit,
        signal: AbortSignal,
        *,
        mode: ExecutionMode = "parallel",
        before: BeforeToolCall | None = None,
        after: AfterToolCall | None = None,
        approve: Approve | None = None,
        ask: bool = True,
        host: Host | None = None,
        add_tool: Callable[[Tool], None] | None = None,
    ) -> None:
        self.context = context
        self.message = message
        self.emit = emit
        self.signal = signal
        self.mode = mode
        self.before = before
        self.after = after
        self.approve = approve
        self.ask = ask
        self.host = host or Host()
        self.add_tool = add_tool

    async def run(self, calls: Sequence[ToolCall]) -> Batch:
        """Run `calls`: one after another if the agent or any tool of the batch says so, else side by side."""
        tools = [self.find(call.name) for call in calls]
        if self.mode == "sequential" or any(t is not None and t.execution_mode == "sequential" for t in tools):
            finalized = await self._run_in_turn(calls)
        else:
            finalized = await self._run_together(calls)
        terminate = bool(finalized) and all(final.result.terminate is True for final in finalized)
        return Batch([final.message for final in finalized], terminate)

    async def refuse(self, calls: Sequence[ToolCall], text: str) -> Batch:
        """End every call with an error result that says `text`; `{name}` in it becomes the tool's name."""
        messages = []
        for call in calls:
            await self._emit_start(call)
            result = ToolResult.failure(text.replace("{name!r}", repr(call.name)))
            await self._emit_end(final := Finalized(call, result, call.arguments))
            await self._emit_message(final.message)
            messages.append(final.message)
        return Batch(messages, False)

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.context.tools if tool.name == name), None)

    # ---- order -----------------------------------------------------------------------------------

    async def _run_in_turn(self, calls: Sequence[ToolCall]) -> list[Finalized]:
        finalized = []
        for call in calls:
            await self._emit_start(call)
            prepared = await self._prepare(call)
            final = prepared if isinstance(prepared, Finalized) else await self._perform(prepared)
            await self._emit_end(final)
            await self._emit_message(final.message)
            finalized.append(final)
        return finalized

    async def _run_together(self, calls: Sequence[ToolCall]) -> list[Finalized]:
        entries: list[Finalized | Prepared] = []
        for call in calls:
            await self._emit_start(call)
            entry = await self._prepare(call)
            if isinstance(entry, Finalized):
                await self._emit_end(entry)
            entries.append(entry)
        waiting = [entry for entry in entries if isinstance(entry, Prepared)]
        if len(waiting) == 1:
            ended = [await self._perform_and_tell(waiting[0])]
        else:
            ended = await asyncio.gather(*map(self._perform_and_tell, waiting))
        done = iter(ended)
        finalized = [entry if isinstance(entry, Finalized) else next(done) for entry in entries]
        for final in finalized:
            await self._emit_message(final.message)
        return finalized

    async def _perform_and_tell(self, prepared: Prepared) -> Finalized:
        final = await self._perform(prepared)
        await self._emit_end(final)
        return final

    # ---- phases ----------------------------------------------------------------------------------

    async def _prepare(self, call: ToolCall) -> Prepared | Finalized:
        """Find, shim, validate, ask the hook. Whatever goes wrong is the call's error result."""
        if self.signal.aborted:
            return Finalized(call, ToolResult.failure(ABORTED), call.arguments)
        tool = self.find(call.name)
        if tool is None:
            return Finalized(call, ToolResult.failure(self._no_such_tool(call.name)), call.arguments)
        context = ToolContext(call.id, call.name, self.signal, None, self.host, self.add_tool)
        token = contract._current.set(context)
        try:
            raw = call.arguments
            if tool.prepare_arguments is not None:
                raw = tool.prepare_arguments(raw)
            args = tool.check(raw)
            prepared = Prepared(call, tool, args, tool.bind(args), context)
            return await self._consult_hook(prepared) or prepared
        except Exception as error:
            return Finalized(call, failure_from(error), call.arguments)
        finally:
            contract._current.reset(token)

    async def _consult_hook(self, prepared: Prepared) -> Finalized | None:
        if self.before is not None:
            hook_context = BeforeToolCallContext(self.message, prepared.call, prepared.args, self.context)
            answer = await settle(self.before(hook_context, self.signal))
            if self.signal.aborted:
                return Finalized(prepared.call, ToolResult.failure(ABORTED), prepared.args)
            if answer is not None and answer.block:
                return blocked(prepared, answer.reason or "This call was blocked.", answer.terminate)
            prepared.params = prepared.tool.bind(prepared.args)
        if self.signal.aborted:
            return Finalized(prepared.call, ToolResult.failure(ABORTED), prepared.args)
        return None

    async def _perform(self, prepared: Prepared) -> Finalized:
        """Approval, execute, finalize."""
        try:
            refused = await self._consult_person(prepared)
        except Exception as error:
            refused = Finalized(prepared.call, failure_from(error), prepared.args)
        if refused is not None:
            return refused
        if self.signal.aborted:
            return Finalized(prepared.call, ToolResult.failure(ABORTED), prepared.args)
        result = await self._execute(prepared)
        return await self._finalize(prepared, result)

    async def _consult_person(self, prepared: Prepared) -> Finalized | None:
        """None if the call may run, with `prepared` holding exactly what was approved."""
        if not self.ask:
            return None
        wanted = prepared.tool.wants_approval(prepared.args)
        if self.approve is None:
            return blocked(prepared, NOBODY) if wanted else None
        shown = copy.deepcopy(prepared.args)
        question = Question(
            prepared.call,
            prepared.tool,
            shown,
            wanted if isinstance(wanted, str) else "",
            bool(wanted),
            signal=self.signal,
        )
        while True:
            decision = await self._ask(self.approve, question)
            if decision is None:
                return Finalized(prepared.call, ToolResult.failure(ABORTED), prepared.args)
            if decision.kind == "block":
                return blocked(prepared, decision.reason or "A person blocked this call.")
            if decision.kind != "edit":
                if shown != prepared.args:
                    prepared.args = shown
                    prepared.params = self._bind(prepared)
                return None
            again = await self._take_edit(prepared, question, decision)
            if again is None or isinstance(again, Finalized):
                return again
            question, shown = again, again.arguments

    async def _ask(self, approve: Approve, question: Question) -> Decision | None:
        answer = approve(question)
        if isinstance(answer, Decision):
            return answer
        task = asyncio.ensure_future(answer)
        return await until_abort(task, self.signal, cancel_after=0.0, abandon_after=CANCEL_AFTER)

    async def _take_edit(
        self, prepared: Prepared, question: Question, decision: Decision
    ) -> Question | Finalized | None:
        """Validate edited arguments and pass the hooks again. None: run them; a Question: ask again."""
        try:
            edited = prepared.tool.check(decision.arguments)
            prepared.args = edited
            prepared.params = self._bind(prepared)
        except ToolError as error:
            return replace(question, error=str(error))
        before = copy.deepcopy(edited)
        refused = await self._consult_hook(prepared)
        if refused is not None:
            return refused
        if prepared.args != before:
            shown = copy.deepcopy(prepared.args)
            return replace(question, arguments=shown, error="A hook changed the edited arguments; please look again.")
        prepared.args = before
        prepared.params = self._bind(prepared)
        return None

    def _bind(self, prepared: Prepared) -> Any:
        token = contract._current.set(prepared.context)
        try:
            return prepared.tool.bind(prepared.args)
        finally:
            contract._current.reset(token)

    async def _execute(self, prepared: Prepared) -> ToolResult:
        call, tool = prepared.call, prepared.tool
        updates = Updates(call, self.emit)
        context = prepared.context
        context._on_update = updates.push
        controller = None
        signal = self.signal
        if tool.timeout is not None:
            controller = AbortController()
            self.signal.on_abort(lambda: controller.abort(self.signal.reason))
            context.signal = signal = controller.signal
        clock = Clock(tool.timeout, controller)
        context._on_begin = clock.begin
        if tool.runs_on != "plain":
            context.begin()
        token = contract._current.set(context)
        try:
            task = asyncio.ensure_future(tool.execute(call.id, prepared.params, signal, updates.push))
        except Exception as error:
            clock.stop()
            return replace(failure_from(error), duration_ms=0)
        finally:
            contract._current.reset(token)
        try:
            result = await self._outcome(task, tool, signal)
        finally:
            clock.stop()
            await updates.close()
        result.duration_ms = clock.milliseconds
        if context.added_tool_names:
            result.added_tool_names = (*result.added_tool_names, *context.added_tool_names)
        return result

    async def _outcome(
        self,
        task: asyncio.Future[ToolResult],
        tool: Tool,
        signal: AbortSignal,
    ) -> ToolResult:
        try:
            cancel_after = CANCEL_AFTER if tool.cancellable else None
            value = await until_abort(task, signal, cancel_after=cancel_after, abandon_after=ABANDON_AFTER)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            value = None
        except Exception as error:
            return failure_from(error)
        if value is None and not (task.done() and not task.cancelled()):
            return self._unfinished(task, tool, signal)
        return as_result(value)

    def _unfinished(self, task: asyncio.Future[ToolResult], tool: Tool, signal: AbortSignal) -> ToolResult:
        if not self.signal.aborted and signal.aborted and tool.timeout is not None:
            left = "" if task.done() else " It may still be running; its result will not be used."
            return ToolResult.failure(f"{tool.name} {signal.reason}.{left}")
        if task.done():
            return ToolResult.failure(INTERRUPTED)
        return ToolResult.failure(ABANDONED.format(seconds=ABANDON_AFTER))

    async def _finalize(self, prepared: Prepared, result: ToolResult) -> Finalized:
        if self.after is not None:
            context = AfterToolCallContext(
                self.message, prepared.call, prepared.args, result, result.is_error, self.context
            )
            try:
                answer = await settle(self.after(context, self.signal))
                if answer is not None:
                    fields = ("content", "details", "usage", "terminate", "is_error")
                    given = {f: v for f in fields if (v := getattr(answer, f)) is not None}
                    result = replace(result, **given)
            except Exception as error:
                result = replace(failure_from(error), duration_ms=result.duration_ms)
        return Finalized(prepared.call, result, prepared.args)

    # ---- events ----------------------------------------------------------------------------------

    def _no_such_tool(self, name: str) -> str:
        names = ", ".join(tool.name for tool in self.context.tools) or "none"
        return f"There is no tool named {name!r}. Tools you can call: {names}."

    async def _emit_start(self, call: ToolCall) -> None:
        await self.emit(ToolExecutionStart(call.id, call.name, call.arguments))

    async def _emit_end(self, final: Finalized) -> None:
        result = final.result
        await self.emit(
            ToolExecutionEnd(
                final.call.id, final.call.name, result, result.is_error, result.duration_ms, args=final.args
            )
        )

    async def _emit_message(self, message: Message) -> None:
        await self.emit(MessageStart(message))
        await self.emit(MessageEnd(message))


def failure_from(error: Exception) -> ToolResult:
    """The error result for an exception: a `ToolError` speaks for itself, others get type and place."""
    if isinstance(error, ToolError):
        return ToolResult.failure(str(error), error)
    from .results import describe_exception

    return ToolResult.failure(describe_exception(error), error)


def blocked(prepared: Prepared, reason: str, terminate: bool | None = None) -> Finalized:
    result = replace(ToolResult.failure(reason), terminate=terminate)
    return Finalized(prepared.call, result, prepared.args)
