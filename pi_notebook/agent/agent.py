"""Agent: a transcript, its tools, and one run at a time over the loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, get_args

from ..ai.abort import AbortSignal
from ..ai.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    UserMessage,
)
from ..ai.model import Model, StreamFunction, StreamOptions, ThinkingLevel, stream
from ..errors import AgentError
from ._loop_errors import is_cancel
from .active_run import ActiveRun, until_cancelled
from .events import AgentEnd, AgentEvent, MessageEnd, MessageStart, TurnEnd
from .guards import Guards
from .hooks import (
    AfterToolCall,
    AgentContext,
    Approve,
    BeforeToolCall,
    ConvertToLlm,
    GetApiKey,
    PrepareNextTurn,
    ShouldStopAfterTurn,
    TransformContext,
    TurnContext,
    settle,
)
from .loop import LoopConfig, check_can_continue, run_loop, run_loop_continue
from .result import RunResult
from .state import AgentState, MessageQueue, QueueMode
from .tool import ExecutionMode, Host, Tool, ToolContext, ToolResult

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[AgentEvent, AbortSignal], Awaitable[None] | None]
Prompt: TypeAlias = str | Message | Sequence[Message]


class Agent:
    """Owns a transcript, runs one prompt at a time, and tells its listeners what happens.

    Args:
        model: A `Model`, a name such as `anthropic:claude-sonnet-4-5`, or None for the configured default.
        tools: Offered to the model, in this order.
        max_turns, max_cost: Guards of each run; None is no limit. `RunResult.stopped_by` says when one stopped it.
        approve: Decides the calls of tools that ask for approval; None blocks those.
        host: What surrounds the tools; None serves plain scripts.
        options: Base of the options of every request (temperature, headers, ...).
        Hooks and the rest: see `LoopConfig`.

    `abort`, `steer` and `follow_up` may be called from any thread; everything else belongs to one event loop.
    """

    def __init__(
        self,
        *,
        model: Model | str | None = None,
        tools: Iterable[Tool] = (),
        system_prompt: str = "",
        messages: Iterable[Message] = (),
        thinking_level: ThinkingLevel = "off",
        tool_execution: ExecutionMode = "parallel",
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        max_turns: int | None = 25,
        max_cost: float | None = None,
        before_tool_call: BeforeToolCall | None = None,
        after_tool_call: AfterToolCall | None = None,
        approve: Approve | None = None,
        transform_context: TransformContext | None = None,
        convert_to_llm: ConvertToLlm | None = None,
        get_api_key: GetApiKey | None = None,
        should_stop_after_turn: ShouldStopAfterTurn | None = None,
        prepare_next_turn: PrepareNextTurn | None = None,
        host: Host | None = None,
        options: StreamOptions | None = None,
        stream: StreamFunction = stream,
    ) -> None:
        if not isinstance(model, Model):
            from ..ai.discovery import default_model
            from ..ai.providers import resolve_model

            model = resolve_model(model) if model else default_model()
        _check_choice("tool_execution", tool_execution, get_args(ExecutionMode))
        _check_choice("steering_mode", steering_mode, get_args(QueueMode))
        _check_choice("follow_up_mode", follow_up_mode, get_args(QueueMode))
        self.state = AgentState(model, system_prompt, thinking_level, tools, messages)
        self.tool_execution = tool_execution
        self.max_turns = max_turns
        self.max_cost = max_cost
        self.before_tool_call = before_tool_call
        self.after_tool_call = after_tool_call
        self.approve = approve
        self.transform_context = transform_context
        self.convert_to_llm = convert_to_llm
        self.get_api_key = get_api_key
        self.should_stop_after_turn = should_stop_after_turn
        self.prepare_next_turn = prepare_next_turn
        self.host = host
        self.options = options or StreamOptions()
        self.stream_function = stream
        self._steering = MessageQueue(steering_mode)
        self._follow_up = MessageQueue(follow_up_mode)
        self._listeners: dict[object, Listener] = {}
        self._run: ActiveRun | None = None

    # ---- listening -------------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(event, signal)` (plain or async, awaited) for every event; returns what ends that.

        Listeners are told in the order in which they subscribed. One that raises is logged with its traceback; the
        run and the other listeners go on.
        """
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    @property
    def signal(self) -> AbortSignal | None:
        """The abort signal of the run that is going on."""
        return self._run.controller.signal if self._run else None

    # ---- queues ----------------------------------------------------------------------------------

    @property
    def steering_mode(self) -> QueueMode:
        return self._steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._steering.mode = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        return self._follow_up.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_up.mode = mode

    def steer(self, message: str | Message) -> None:
        """Tell the model `message` after the turn that is going on."""
        self._steering.messages.append(_as_messages(message)[0])

    def follow_up(self, message: str | Message) -> None:
        """Tell the model `message` when it would otherwise stop."""
        self._follow_up.messages.append(_as_messages(message)[0])

    def clear_steering_queue(self) -> None:
        self._steering.messages.clear()

    def clear_follow_up_queue(self) -> None:
        self._follow_up.messages.clear()

    def clear_all_queues(self) -> None:
        self.clear_steering_queue()
        self.clear_follow_up_queue()

    def has_queued_messages(self) -> bool:
        return bool(self._steering.messages or self._follow_up.messages)

    # ---- running ---------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, images: Sequence[ImageContent] = ()) -> RunResult:
        """Add `prompt` to the transcript and run until the model has nothing more to call.

        A failure of the model does not raise: see `RunResult.error_message`.

        Raises:
            AgentError: If a run is going on.
        """
        self._check_idle("prompt")
        return await self._run_prompts(_as_messages(prompt, images))

    async def continue_(self) -> RunResult:
        """Run from the transcript as it stands; after a model's own message, from what is queued.

        Raises:
            AgentError: If a run is going on, or there is nothing to continue from.
        """
        self._check_idle("continue")
        messages = self.state.messages
        if messages and messages[-1].role == "assistant":
            if steering := self._steering.drain():
                return await self._run_prompts(steering, skip_first_poll=True)
            if follow_up := self._follow_up.drain():
                return await self._run_prompts(follow_up)
        check_can_continue(messages)
        return await self._with_lifecycle(lambda: run_loop_continue(self._context(), self._config(), self._process))

    def run(self, prompt: Prompt, images: Sequence[ImageContent] = ()) -> RunResult:
        """`prompt` for plain scripts: blocks until the run has ended.

        Raises:
            AgentError: Inside a running event loop (use `await agent.prompt(...)` there).
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.prompt(prompt, images))
        raise AgentError("An event loop is running here: use `await agent.prompt(...)` instead of `agent.run(...)`.")

    async def stream(self, prompt: Prompt, images: Sequence[ImageContent] = ()) -> AsyncIterator[AgentEvent]:
        """`prompt` as an async iterator of its events.

        Closing it early aborts the run. `break` alone leaves the closing for later; `contextlib.aclosing` around it
        closes it, and waits for the end of the run, where it is left.
        """
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        unsubscribe = self.subscribe(lambda event, _: events.put_nowait(event))
        task = asyncio.ensure_future(self.prompt(prompt, images))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            unsubscribe()
            if not task.done():
                self.abort("the reader of the events left")
                await asyncio.wait([task])

    async def run_tool_call(self, call: ToolCall) -> ToolResult:
        """Take one call through all phases with this agent's tools, hooks and host, without a model.

        It is not asked about: whoever calls this has decided. Never raises for what the tool does.
        """
        from .single_call import run_tool_call

        return await run_tool_call(
            call,
            self.state.tools,
            before=self.before_tool_call,
            after=self.after_tool_call,
            host=self.host,
            add_tool=self._add_tool,
            ask=False,
        )

    def abort(self, reason: str = "stopped") -> None:
        """End the run that is going on, if any, within a second, whatever its tools do. Hooks are waited for."""
        if self._run is not None:
            self._run.controller.abort(reason)

    async def wait_for_idle(self) -> None:
        """Return when no run is going on and all listeners have been told of its end."""
        if self._run is not None:
            await self._run.idle.wait()

    def reset(self) -> None:
        """Forget transcript, error and queues.

        Raises:
            AgentError: While a run is going on.
        """
        self._check_idle("reset")
        self.state.messages = []
        self.state.error_message = None
        self.clear_all_queues()

    # ---- one run ---------------------------------------------------------------------------------

    def _check_idle(self, what: str) -> None:
        if self._run is not None:
            raise AgentError(
                f"Cannot {what}: a run is going on. Use steer() or follow_up() to add to it, abort() to end it, "
                "or wait_for_idle()."
            )

    async def _run_prompts(self, prompts: Sequence[Message], *, skip_first_poll: bool = False) -> RunResult:
        return await self._with_lifecycle(
            lambda: run_loop(prompts, self._context(), self._config(skip_first_poll), self._process)
        )

    def _context(self) -> AgentContext:
        state = self.state
        return AgentContext(state.system_prompt, list(state.messages), list(state.tools))

    def _config(self, skip_first_poll: bool = False) -> LoopConfig:
        run = self._run
        assert run is not None
        skip = skip_first_poll

        def steering() -> list[Message]:
            nonlocal skip
            if skip:
                skip = False
                return []
            notes, run.notes = run.notes, []
            return notes + self._steering.drain()

        return LoopConfig(
            model=self.state.model,
            thinking_level=self.state.thinking_level,
            tool_execution=self.tool_execution,
            options=replace(self.options, signal=run.controller.signal),
            stream=self.stream_function,
            convert_to_llm=self.convert_to_llm,
            transform_context=self.transform_context,
            get_api_key=self.get_api_key,
            before_tool_call=self.before_tool_call,
            after_tool_call=self.after_tool_call,
            approve=self.approve,
            should_stop_after_turn=self._should_stop,
            prepare_next_turn=self.prepare_next_turn,
            get_steering_messages=steering,
            get_follow_up_messages=self._follow_up.drain,
            host=self.host,
            add_tool=self._add_tool,
        )

    async def _should_stop(self, turn: TurnContext) -> bool:
        run = self._run
        assert run is not None
        run.stopped_by, note = run.guards.after_turn(turn, queued=self.has_queued_messages())
        if note is not None:
            run.notes.append(note)
        asked = self.should_stop_after_turn is not None and await settle(self.should_stop_after_turn, turn)
        return bool(run.stopped_by) or bool(asked)

    def _add_tool(self, tool: Tool) -> None:
        self.state.tools = [t for t in self.state.tools if t.name != tool.name] + [tool]

    async def _with_lifecycle(self, execute: Callable[[], Awaitable[Any]]) -> RunResult:
        state = self.state
        self._run = run = ActiveRun(Guards(self.max_turns, self.max_cost))
        state.is_streaming = True
        state.error_message = None
        from ..ai.connection import Connection

        own = self.options.connection is None
        connection = self.options.connection or Connection()
        self.options = replace(self.options, connection=connection)
        outer = ToolContext.current()  # of the tool in which this agent runs, whose abort is this run's too
        forget = outer.signal.on_abort(lambda: run.controller.abort(outer.signal.reason)) if outer else None
        try:
            await until_cancelled(execute, run.controller)
        except Exception as error:
            await self._fail(error, run.controller.signal.aborted)
        finally:
            if forget is not None:
                forget()
            if own:
                self.options = replace(self.options, connection=None)
            state.rest()
            self._run = None
            run.idle.set()
            if own:
                await connection.aclose()
        return run.result()

    async def _fail(self, error: Exception, aborted: bool) -> None:
        """End a run that a hook or the stream function broke, as a model's failure would."""
        logger.debug("a run failed", exc_info=error)
        model = self.state.model
        message = AssistantMessage(
            (TextContent(""),),
            model.api,
            model.provider,
            model.id,
            stop_reason="aborted" if aborted else "error",
            error_message=str(error) or type(error).__name__,
        )
        for event in (MessageStart(message), MessageEnd(message), TurnEnd(message, ()), AgentEnd((message,))):
            await self._process(event)

    async def _process(self, event: AgentEvent) -> None:
        """Keep the state, then tell the listeners."""
        run = self._run
        assert run is not None
        self.state.reduce(event)
        run.note(event)
        signal = run.controller.signal
        for listener in tuple(self._listeners.values()):
            try:
                told = listener(event, signal)
                if told is not None and inspect.isawaitable(told):
                    await told
            except (Exception, asyncio.CancelledError) as error:
                if is_cancel(error):
                    raise
                logger.exception("a listener raised on %s", event.type)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise AgentError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}.")


def _as_messages(prompt: Prompt, images: Sequence[ImageContent] = ()) -> list[Message]:
    if isinstance(prompt, str):
        return [UserMessage((TextContent(prompt), *images))]
    messages: list[Any] = list(prompt) if isinstance(prompt, list | tuple) else [prompt]
    if not all(hasattr(message, "role") for message in messages):
        raise AgentError(f"A prompt is text, a message or a list of messages, not {prompt!r:.100}.")
    return messages
