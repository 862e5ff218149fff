"""The agent loop: ask the model, run the calls of its reply, tell it the results, until it has nothing to call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from ..ai.messages import AssistantMessage, Message
from ..ai.model import Context, Model, StreamFunction, StreamOptions, ThinkingLevel, stream
from ..ai.stream import StreamEvent
from ..errors import AgentError
from .events import (
    AgentEnd,
    AgentStart,
    Emit,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    TurnEnd,
    TurnStart,
)
from .execution import TRUNCATED, Batch, ToolCalls
from .hooks import (
    AfterToolCall,
    AgentContext,
    Approve,
    BeforeToolCall,
    ConvertToLlm,
    GetApiKey,
    GetMessages,
    PrepareNextTurn,
    ShouldStopAfterTurn,
    TransformContext,
    TurnContext,
    settle,
)
from .tool import ExecutionMode, Host, Tool


@dataclass(slots=True)
class LoopConfig:
    """How a loop runs: the model, the seams, and what tools are surrounded by.

    Args:
        model, thinking_level: Used for every request until `prepare_next_turn` says otherwise.
        tool_execution: `sequential` runs every batch in order.
        options: Base of each request's options; key, signal and thinking are filled in.
        stream: Asks the model; the default speaks the wire protocols.
        convert_to_llm: Transcript -> what a model can be told; None sends every message.
        transform_context: Transcript -> transcript, before that: pruning, injected context.
        get_steering_messages: Asked at the start and after each turn; its messages go in before the next request.
        get_follow_up_messages: Asked when the agent would stop; its messages start another round.
        add_tool: Called when a running tool registers another.
    """

    model: Model
    thinking_level: ThinkingLevel = "off"
    tool_execution: ExecutionMode = "parallel"
    options: StreamOptions = field(default_factory=StreamOptions)
    stream: StreamFunction = stream
    convert_to_llm: ConvertToLlm | None = None
    transform_context: TransformContext | None = None
    get_api_key: GetApiKey | None = None
    before_tool_call: BeforeToolCall | None = None
    after_tool_call: AfterToolCall | None = None
    approve: Approve | None = None
    should_stop_after_turn: ShouldStopAfterTurn | None = None
    prepare_next_turn: PrepareNextTurn | None = None
    get_steering_messages: GetMessages | None = None
    get_follow_up_messages: GetMessages | None = None
    host: Host | None = None
    add_tool: Callable[[Tool], None] | None = None


async def run_loop(prompts: Sequence[Message], context: AgentContext, config: LoopConfig, emit: Emit) -> list[Message]:
    """Run the loop on `context` with `prompts` added; returns the messages that the run added, prompts included.

    `context` itself is not changed. `config.options.signal` aborts the run. What a hook raises outside a tool call
    comes out of here; failures of the model do not: they are its last message.
    """
    run = _Run(replace(context, messages=[*context.messages, *prompts]), config, emit)
    run.new_messages.extend(prompts)
    await emit(AgentStart())
    await emit(TurnStart())
    for prompt in prompts:
        await emit(MessageStart(prompt))
        await emit(MessageEnd(prompt))
    await run.rounds()
    return run.new_messages


async def run_loop_continue(context: AgentContext, config: LoopConfig, emit: Emit) -> list[Message]:
    """Like `run_loop`, from the transcript as it stands. Its last message must not be the model's own."""
    check_can_continue(context.messages)
    run = _Run(replace(context, messages=list(context.messages)), config, emit)
    await emit(AgentStart())
    await emit(TurnStart())
    await run.rounds()
    return run.new_messages


def check_can_continue(messages: Sequence[Message]) -> None:
    """Raise `AgentError` unless a model could be asked to go on from here."""
    if not messages:
        raise AgentError("Cannot continue: the transcript is empty. Start with a prompt.")
    if messages[-1].role == "assistant":
        raise AgentError("Cannot continue: the last message is the model's own. Send a prompt instead.")


class _Run:
    """State of one run of the loop."""

    def __init__(self, context: AgentContext, config: LoopConfig, emit: Emit) -> None:
        self.context = context
        self.config = config
        self.emit = emit
        self.new_messages: list[Message] = []
        signal = config.options.signal
        if signal is None:
            raise AgentError("LoopConfig.options needs a signal.")
        self.signal = signal

    async def rounds(self) -> None:
        pending = await self._poll(self.config.get_steering_messages)
        first = True
        while True:
            more = True
            while more or pending:
                if not first:
                    await self.emit(TurnStart())
                first = False
                await self._inject(pending)
                ended, more = await self._turn()
                if ended:
                    await self.emit(AgentEnd(self.new_messages))
                    return
                pending = await self._poll(self.config.get_steering_messages)
            pending = await self._poll(self.config.get_follow_up_messages)
            if not pending:
                break
        await self.emit(AgentEnd(self.new_messages))

    async def _poll(self, get_messages: GetMessages | None) -> Sequence[Message]:
        return (await settle(get_messages) if get_messages else None) or ()

    async def _inject(self, messages: Sequence[Message]) -> None:
        for message in messages:
            await self.emit(MessageStart(message))
            await self.emit(MessageEnd(message))
            self._add(message)

    def _add(self, message: Message) -> None:
        self.context.messages.append(message)
        self.new_messages.append(message)

    async def _turn(self) -> tuple[bool, bool]:
        """One request and its calls; returns (the run is over, the model wants to see results)."""
        message = await self._ask_model()
        self._add(message)
        if message.stop_reason in ("error", "aborted"):
            await self.emit(TurnEnd(message, ()))
            return True, False
        batch = await self._run_calls(message)
        for result in batch.messages:
            self._add(result)
        await self.emit(TurnEnd(message, batch.messages))
        stop = await self._between_turns(message, batch)
        return stop, bool(batch.messages) and not batch.terminate

    async def _run_calls(self, message: AssistantMessage) -> Batch:
        calls = message.tool_calls
        if not calls:
            return Batch([], False)
        config = self.config
        runner = ToolCalls(
            self.context,
            message,
            self.emit,
            self.signal,
            mode=config.tool_execution,
            before=config.before_tool_call,
            after=config.after_tool_call,
            approve=config.approve,
            host=config.host,
            add_tool=self._add_tool,
        )
        if message.stop_reason == "length":
            return await runner.refuse(calls, TRUNCATED)
        return await runner.run(calls)

    def _add_tool(self, tool: Tool) -> None:
        self.context.tools = [t for t in self.context.tools if t.name != tool.name] + [tool]
        if self.config.add_tool is not None:
            self.config.add_tool(tool)

    async def _between_turns(self, message: AssistantMessage, batch: Batch) -> bool:
        """Let the hooks change the next turn; True stops the run here."""
        config = self.config
        if config.prepare_next_turn is not None:
            turn = TurnContext(message, batch.messages, self.context, self.new_messages)
            following = await settle(config.prepare_next_turn, turn)
            if following is not None:
                self.context = following.context or self.context
                self.config = config = replace(
                    config,
                    model=following.model or config.model,
                    thinking_level=following.thinking_level or config.thinking_level,
                )
        if config.should_stop_after_turn is not None:
            turn = TurnContext(message, batch.messages, self.context, self.new_messages)
            return bool(await settle(config.should_stop_after_turn, turn))
        return False

    async def _ask_model(self) -> AssistantMessage:
        config = self.config
        messages = self.context.messages
        if config.transform_context is not None:
            messages = await settle(config.transform_context, messages, self.signal)
        if config.convert_to_llm is not None:
            messages = await settle(config.convert_to_llm, messages)
        key = await settle(config.get_api_key, config.model.provider) if config.get_api_key else None
        options = replace(config.options, thinking=config.thinking_level, api_key=key or config.options.api_key)
        request = Context(self.context.system_prompt, messages, self.context.tools)
        return await self._read_reply(config.stream(config.model, request, options))

    async def _read_reply(self, events: AsyncIterator[StreamEvent]) -> AssistantMessage:
        emit = self.emit
        started = False
        last = None
        async for event in events:
            if event.type == "done" or event.type == "error":
                return await self._end_reply(event.message, started)
            last = event
            if event.type == "start":
                started = True
                await emit(MessageStart(event.partial))
            elif started:
                await emit(MessageUpdate(event))
        if last is None:
            model = self.config.model
            text = f"{model.label} ended its reply without an answer."
            return await self._end_reply(
                AssistantMessage((), model.api, model.provider, model.id, stop_reason="error", error_message=text),
                started,
            )
        return await self._end_reply(last.partial, started)

    async def _end_reply(self, message: AssistantMessage, started: bool) -> AssistantMessage:
        if not started:
            await self.emit(MessageStart(message))
        await self.emit(MessageEnd(message))
        return message
