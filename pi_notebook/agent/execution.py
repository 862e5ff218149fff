"""One batch of tool calls: prepare -> (a person's approval) -> execute -> finalize, in order or side by side.

Each call ends in exactly one tool-result message, whatever happens; messages come in the order of the calls.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from ..ai.abort import AbortSignal
from ..ai.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from ..errors import AgentError, ToolError
from . import tool as contract
from .attempts import Attempt, Attempts, Interrupted, Patience
from .events import (
    Emit,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from .execute_phase import ABANDON_AFTER, ABORTED, CANCEL_AFTER, ExecutePhase, as_result
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

TRUNCATED = (
    "Not run: the reply hit the output token limit, so the arguments of {name!r} may be cut off. "
    "Call it again with complete (shorter) arguments."
)
NOBODY = "Blocked: this tool needs a person's approval and nobody could be asked."

WHILE_ASKING = Patience(0.0, CANCEL_AFTER)
WHILE_IT_RUNS = Patience(CANCEL_AFTER, ABANDON_AFTER)
WHILE_IT_CANNOT_BE_CANCELLED = Patience(None, ABANDON_AFTER)


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
        return result_message(self.call.id, self.call.name, self.result)


def result_message(call_id: str, name: str, result: ToolResult) -> ToolResultMessage:
    """The message that tells the model what the call came to."""
    return ToolResultMessage(
        call_id,
        name,
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
            finalized = [final for call in calls for final in await self._run_together([call])]
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

    async def _run_together(self, calls: Sequence[ToolCall]) -> list[Finalized]:
        entries: list[Finalized | Prepared] = []
        for call in calls:
            await self._emit_start(call)
            entry = await self._prepare(call)
            if isinstance(entry, Finalized):
                await self._emit_end(entry)
            entries.append(entry)
        works = (partial(self._complete, entry) for entry in entries if isinstance(entry, Prepared))
        outcomes = iter(await Attempts[Finalized](self.signal).outcomes(works))
        finalized = [entry if isinstance(entry, Finalized) else next(outcomes) for entry in entries]
        for final in finalized:
            await self._emit_message(final.message)
        return finalized

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
            answer = await settle(self.before, hook_context, self.signal)
            if self.signal.aborted:
                return aborted(prepared)
            if answer is not None and answer.block:
                return blocked(prepared, answer.reason or "This call was blocked.", answer.terminate)
            prepared.params = prepared.tool.bind(prepared.args)
        if self.signal.aborted:
            return aborted(prepared)
        return None

    async def _complete(self, prepared: Prepared, attempt: Attempt[Finalized]) -> Finalized:
        """Approval, execute, finalize."""
        try:
            refused = await self._consult_person(prepared, attempt)
        except Exception as error:
            refused = Finalized(prepared.call, failure_from(error), prepared.args)
        if refused is None and self.signal.aborted:
            refused = aborted(prepared)
        if refused is not None:
            return await self._end(refused)
        return await self._finalize(prepared, await self._execute(prepared, attempt))

    async def _consult_person(self, prepared: Prepared, attempt: Attempt[Finalized]) -> Finalized | None:
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
            decision = self.approve(question)
            if inspect.isawaitable(decision):
                otherwise = partial(self._end, aborted(prepared))
                try:
                    decision = await attempt.until_abort(decision, WHILE_ASKING, otherwise)
                except Interrupted:
                    return aborted(prepared)
            if not isinstance(decision, Decision):
                raise AgentError(f"approve must answer with a Decision, not {decision!r:.100}.")
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

    async def _execute(self, prepared: Prepared, attempt: Attempt[Finalized]) -> ToolResult:
        tool = prepared.tool
        phase = ExecutePhase(prepared.call, tool, prepared.context, self.emit, attempt.interrupt)

        async def leave_behind() -> Finalized:
            return await self._finalize(prepared, await phase.end(phase.left_behind()))

        token = contract._current.set(prepared.context)
        patience = WHILE_IT_RUNS if tool.cancellable else WHILE_IT_CANNOT_BE_CANCELLED
        try:
            result = as_result(await attempt.until_abort(phase.start(prepared.params), patience, leave_behind))
        except Interrupted:
            result = phase.interrupted()
        except Exception as error:
            result = phase.spared() or failure_from(error)
        finally:
            contract._current.reset(token)
        return await phase.end(result)

    async def _finalize(self, prepared: Prepared, result: ToolResult) -> Finalized:
        if self.after is not None:
            context = AfterToolCallContext(
                self.message, prepared.call, prepared.args, result, result.is_error, self.context
            )
            try:
                answer = await settle(self.after, context, self.signal)
                if answer is not None:
                    fields = ("content", "details", "usage", "terminate", "is_error")
                    given = {f: v for f in fields if (v := getattr(answer, f)) is not None}
                    result = replace(result, **given)
            except Exception as error:
                result = replace(failure_from(error), duration_ms=result.duration_ms)
        return await self._end(Finalized(prepared.call, result, prepared.args))

    # ---- events ----------------------------------------------------------------------------------

    def _no_such_tool(self, name: str) -> str:
        names = ", ".join(tool.name for tool in self.context.tools) or "none"
        return f"There is no tool named {name!r}. Tools you can call: {names}."

    async def _emit_start(self, call: ToolCall) -> None:
        await self.emit(ToolExecutionStart(call.id, call.name, call.arguments))

    async def _end(self, final: Finalized) -> Finalized:
        await self._emit_end(final)
        return final

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


def aborted(prepared: Prepared) -> Finalized:
    return Finalized(prepared.call, ToolResult.failure(ABORTED), prepared.args)


def blocked(prepared: Prepared, reason: str, terminate: bool | None = None) -> Finalized:
    result = replace(ToolResult.failure(reason), terminate=terminate)
    return Finalized(prepared.call, result, prepared.args)
