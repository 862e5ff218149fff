"""Runs one loop scenario on our loop or Agent and records the same trace as the reference's."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import Any

from pi_notebook.agent.events import AgentEvent
from pi_notebook.agent.hooks import (
    AfterToolCallContext,
    AfterToolCallResult,
    AgentContext,
    BeforeToolCallContext,
    BeforeToolCallResult,
    NextTurn,
    TurnContext,
)
from pi_notebook.agent.loop import LoopConfig, run_loop, run_loop_continue
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.abort import AbortController, AbortSignal
from pi_notebook.ai.message_json import (
    block_from_json,
    block_to_json,
    message_from_json,
    message_to_json,
    usage_from_json,
    usage_to_json,
)
from pi_notebook.ai.messages import Message
from pi_notebook.ai.model import Context, Model, StreamOptions
from pi_notebook.ai.stream import Reply, StreamEvent
from pi_notebook.errors import ToolError


def to_message(data: Any) -> Message:
    if isinstance(data, str):
        data = {"role": "user", "content": [{"type": "text", "text": data}]}
    if data["role"] == "assistant":
        data = {"model": "m1", "stopReason": "stop"} | data
    return message_from_json(data)


def message_json(message: Message) -> dict[str, Any]:
    data = message_to_json(message)
    drop = {"timestamp", "durationMs"}
    if message.role == "assistant":
        drop |= {"usage", "api", "provider", "responseId", "responseModel", "rawStopReason"}
    return copy.deepcopy({key: value for key, value in data.items() if key not in drop})


def result_json(result: ToolResult) -> dict[str, Any]:
    data: dict[str, Any] = {"content": [block_to_json(block) for block in result.content]}
    if result.details is not None:
        data["details"] = result.details
    if result.usage is not None:
        data["usage"] = usage_to_json(result.usage)
    if result.added_tool_names:
        data["addedToolNames"] = list(result.added_tool_names)
    if result.terminate is not None:
        data["terminate"] = result.terminate
    return data


def to_result(data: Any) -> Any:
    """A recorded tool result as ours; what is no result object stays as it is."""
    if not isinstance(data, dict):
        return data
    usage = data.get("usage")
    return ToolResult(
        [block_from_json(block) for block in data.get("content") or ()],
        data.get("details"),
        usage and usage_from_json(usage),
        data.get("addedToolNames") or (),
        data.get("terminate"),
        bool(data.get("isError")),
    )


def event_json(event: AgentEvent) -> dict[str, Any]:
    kind = event.type
    data: dict[str, Any] = {"type": kind}
    if kind == "agent_end":
        data["messages"] = [message_json(m) for m in event.messages]
    elif kind in ("message_start", "message_end"):
        data["message"] = message_json(event.message)
    elif kind == "message_update":
        update = event.assistant_message_event
        data["update"] = {"type": update.type, "contentIndex": update.content_index}
        for key in ("delta", "content"):
            if hasattr(update, key):
                data["update"][key] = getattr(update, key)
        if update.type == "toolcall_end":
            data["update"]["toolCall"] = copy.deepcopy(block_to_json(update.tool_call))
    elif kind == "turn_end":
        data["message"] = message_json(event.message)
        data["toolResults"] = [message_json(m) for m in event.tool_results]
    elif kind.startswith("tool_execution"):
        data |= {"toolCallId": event.tool_call_id, "toolName": event.tool_name}
        if kind == "tool_execution_end":
            data |= {"result": result_json(event.result), "isError": event.is_error}
        else:
            data["args"] = copy.deepcopy(event.args)
        if kind == "tool_execution_update":
            data["partialResult"] = result_json(event.partial_result)
    return data


class Matcher:
    """`on`: true for the nth event that fits."""

    def __init__(self, on: dict[str, Any]) -> None:
        self.on = on
        self.left = on.get("nth", 1)

    def fits(self, event: dict[str, Any]) -> bool:
        on = self.on
        if event["type"] != on["event"]:
            return False
        if "role" in on and event.get("message", {}).get("role") != on["role"]:
            return False
        if "toolCallId" in on and event.get("toolCallId") != on["toolCallId"]:
            return False
        self.left -= 1
        return self.left == 0


class Driver:
    """One scenario: its scripted model, tools and hooks, and the trace it leaves."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.config: dict[str, Any] = scenario.get("config", {})
        self.events: list[dict[str, Any]] = []
        self.contexts: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.turns = list(scenario["turns"])
        self.controller = AbortController()
        self.abort: Callable[[], None] = self.controller.abort
        self.counts: dict[str, int] = {}
        self.invocations: dict[str, int] = {}
        self.background: list[asyncio.Future[Any]] = []
        self.tools = [self.make_tool(tool) for tool in scenario.get("tools", [])]

    def count(self, what: str) -> int:
        self.counts[what] = self.counts.get(what, 0) + 1
        return self.counts[what]

    def named_tools(self, names: list[str]) -> list[Tool]:
        return [tool for name in names for tool in self.tools if tool.name == name]

    # ---- model -----------------------------------------------------------------------------------

    async def stream(self, model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
        self.contexts.append(
            {
                "model": model.id,
                "systemPrompt": context.system_prompt,
                "tools": [tool.name for tool in context.tools],
                "messages": [message_json(m) for m in context.messages],
            }
            | ({} if options.thinking == "off" else {"reasoning": options.thinking})
        )
        turn = self.turns.pop(0)
        how = turn.get("stream") or {}
        signal = options.signal
        if "throw" in how:
            raise ToolError(how["throw"])
        reply = Reply("api", "test", model.id)
        aborted = bool(how.get("check_abort")) and signal.aborted
        async for event in self.play(reply, turn, how, signal):
            if aborted and event.type in ("done", "error"):  # the reference's stub then answers with nothing
                event = Reply("api", "test", model.id).error("aborted", aborted=True)
            yield event

    async def play(self, reply: Reply, turn: dict, how: dict, signal: AbortSignal) -> AsyncIterator[StreamEvent]:
        hang_after = how.get("hang_after")
        events = self.block_events(reply, turn["content"])
        for event in islice(events, hang_after):
            if not how.get("no_start"):
                await asyncio.sleep(how.get("delay_ms", 0) / 1000)
                yield event
        has_call = any(block["type"] == "toolCall" for block in turn["content"])
        reason = turn.get("stopReason", "toolUse" if has_call else "stop")
        if hang_after is not None:
            await signal.wait()
            yield reply.error("aborted", aborted=True)
        elif how.get("end_without_done"):
            return
        elif reason in ("error", "aborted"):
            yield reply.error(turn.get("errorMessage"), aborted=reason == "aborted")
        else:
            yield reply.done("tool_use" if reason == "toolUse" else reason)

    @staticmethod
    def block_events(reply: Reply, content: list[dict]) -> Any:
        yield reply.start()
        for block in content:
            if block["type"] == "text":
                start = reply.text_start()
                reply.blocks[-1].signature = block.get("textSignature")
                yield start
                yield reply.text_delta(start.content_index, block["text"])
                yield reply.text_end(start.content_index)
            elif block["type"] == "thinking":
                start = reply.thinking_start()
                reply.blocks[-1].signature = block.get("thinkingSignature")
                yield start
                yield reply.thinking_delta(start.content_index, block["thinking"])
                yield reply.thinking_end(start.content_index)
            else:
                start = reply.toolcall_start(block["id"], block["name"])
                reply.blocks[-1].signature = block.get("thoughtSignature")
                yield start
                text = json.dumps(block["arguments"], separators=(",", ":"), ensure_ascii=False)
                yield reply.toolcall_delta(start.content_index, text)
                yield reply.toolcall_end(start.content_index, block["arguments"])

    # ---- tools -----------------------------------------------------------------------------------

    def make_tool(self, spec: dict[str, Any]) -> Tool:
        async def execute(call_id: str, params: Any, signal: AbortSignal, on_update: Any) -> Any:
            entry = {"call": "execute", "tool": spec["name"], "toolCallId": call_id}
            self.calls.append(entry | {"args": copy.deepcopy(params), "aborted": signal.aborted})
            return await self.behave(self.behaviour(spec, call_id), call_id, spec["name"], params, signal, on_update)

        def prepare(args: Any) -> Any:
            self.calls.append({"call": "prepare", "tool": spec["name"], "args": copy.deepcopy(args)})
            return shim(spec["prepareArguments"], args)

        return Tool(
            spec["name"],
            spec["description"],
            spec["parameters"],
            execute,
            execution_mode=spec.get("executionMode"),
            prepare_arguments=prepare if "prepareArguments" in spec else None,
        )

    def behaviour(self, spec: dict[str, Any], call_id: str) -> dict[str, Any]:
        behaviour = spec["behavior"]
        if "by_call_id" in behaviour:
            return behaviour["by_call_id"].get(call_id, behaviour.get("default", {}))
        if "sequence" in behaviour:
            number = self.invocations[spec["name"]] = self.invocations.get(spec["name"], -1) + 1
            return behaviour["sequence"][number]
        return behaviour

    async def behave(self, do: dict, call_id: str, name: str, params: Any, signal: AbortSignal, on_update: Any) -> Any:
        params.update(do.get("mutate_args", {}))
        for update in do.get("updates", ()):
            if "delay_ms" in update:
                await asyncio.sleep(update["delay_ms"] / 1000)
            on_update(to_result(update["partial"]))
        if "late_updates" in do:
            self.background.append(asyncio.ensure_future(self.late(do, call_id, name, on_update)))
        if do.get("abort_self"):
            self.abort()
        if "delay_ms" in do:
            await asyncio.sleep(do["delay_ms"] / 1000)
        if do.get("wait_abort"):
            await signal.wait()
            await asyncio.sleep(do.get("abort_delay_ms", 0) / 1000)
            if "result" in do.get("on_abort", {}):
                return to_result(do["on_abort"]["result"])
            raise ToolError(do.get("on_abort", {}).get("throw", "tool aborted"))
        if "throw" in do:
            raise ToolError(do["throw"].get("message", ""))
        if "result_raw" in do:
            return to_result(do["result_raw"])
        if do.get("echo_args"):
            text = json.dumps(params, separators=(",", ":"), ensure_ascii=False)
            return ToolResult(text, {"echoed": True})
        return to_result(do["result"]) if "result" in do else ToolResult("ok", {})

    async def late(self, do: dict, call_id: str, name: str, on_update: Any) -> None:
        await asyncio.sleep(do.get("late_delay_ms", 0) / 1000)
        for update in do["late_updates"]:
            self.calls.append({"call": "late_update", "tool": name, "toolCallId": call_id})
            on_update(to_result(update["partial"]))

    # ---- hooks -----------------------------------------------------------------------------------

    def action(self, hook: str, call: Any) -> dict[str, Any]:
        number = self.count(hook)
        for entry in self.config[hook]:
            match = entry.get("match", {})
            seen = {"tool": call.name, "id": call.id, "nth": number}
            if all(seen[key] == value for key, value in match.items()):
                return entry["action"]
        return {}

    async def act(self, action: dict[str, Any], args: dict, signal: AbortSignal) -> None:
        if "delay_ms" in action:
            await asyncio.sleep(action["delay_ms"] / 1000)
        if action.get("abort"):
            self.abort()
        if action.get("wait_abort"):
            await signal.wait()
        if "throw" in action:
            raise ToolError(action["throw"])
        args.update(action.get("set_args", {}))
        for key in action.get("delete_args", ()):
            args.pop(key, None)

    async def before(self, context: BeforeToolCallContext, signal: AbortSignal) -> BeforeToolCallResult | None:
        call = context.tool_call
        self.calls.append(
            {
                "call": "before",
                "tool": call.name,
                "toolCallId": call.id,
                "args": copy.deepcopy(context.args),
                "rawArgs": copy.deepcopy(call.arguments),
                "contextRoles": roles(context.context.messages),
            }
        )
        action = self.action("beforeToolCall", call)
        await self.act(action, context.args, signal)
        given = action.get("return") or {}
        return BeforeToolCallResult(given.get("block", False), given.get("reason"), given.get("terminate"))

    async def after(self, context: AfterToolCallContext, signal: AbortSignal) -> AfterToolCallResult | None:
        call = context.tool_call
        self.calls.append(
            {
                "call": "after",
                "tool": call.name,
                "toolCallId": call.id,
                "args": copy.deepcopy(context.args),
                "result": result_json(context.result),
                "isError": context.is_error,
                "contextRoles": roles(context.context.messages),
            }
        )
        action = self.action("afterToolCall", call)
        await self.act(action, {}, signal)
        if action.get("return") is None:
            return None
        given = action["return"]
        content = given.get("content")
        usage = given.get("usage")
        return AfterToolCallResult(
            content=None if content is None else [block_from_json(block) for block in content],
            details=given.get("details"),
            is_error=given.get("isError"),
            usage=usage and usage_from_json(usage),
            terminate=given.get("terminate"),
        )

    def should_stop(self, turn: TurnContext) -> bool:
        number = self.count("shouldStop")
        self.calls.append({"call": "shouldStop", "turn": number, "contextRoles": roles(turn.context.messages)})
        return number in self.config["shouldStopAfterTurn"]["turns"]

    def prepare_next(self, turn: TurnContext) -> NextTurn | None:
        number = self.count("prepareNextTurn")
        stop_reason = message_json(turn.message)["stopReason"]
        entry = {"call": "prepareNextTurn", "n": number, "stopReason": stop_reason}
        results = {"toolResults": len(turn.tool_results), "contextRoles": roles(turn.context.messages)}
        self.calls.append(entry | results)
        for entry in self.config["prepareNextTurn"]:
            if entry["n"] == number:
                given = entry["return"]
                context = None
                if "context" in given:
                    new = given["context"]
                    old = turn.context
                    context = AgentContext(
                        new.get("systemPrompt", old.system_prompt),
                        [to_message(m) for m in new["messages"]] if "messages" in new else old.messages,
                        self.named_tools(new["tools"]) if "tools" in new else old.tools,
                    )
                model = Model(given["model"], "api") if "model" in given else None
                return NextTurn(context, model, given.get("thinkingLevel"))
        return None

    def transform(self, messages: list[Message], signal: AbortSignal) -> list[Message]:
        how = self.config["transformContext"]
        if how["op"] == "keep_last":
            return messages[-how["n"] :]
        return [to_message(how["text"]), *messages]

    def poll(self, key: str, name: str) -> Callable[[], list[Message]]:
        def get() -> list[Message]:
            number = self.count(name)
            batches = self.config[key]
            batch = batches[number - 1] if number <= len(batches) else []
            self.calls.append({"call": name, "n": number, "got": len(batch)})
            return [to_message(m) for m in batch]

        return get

    def hooks(self) -> dict[str, Any]:
        available = {
            "beforeToolCall": ("before_tool_call", self.before),
            "afterToolCall": ("after_tool_call", self.after),
            "shouldStopAfterTurn": ("should_stop_after_turn", self.should_stop),
            "prepareNextTurn": ("prepare_next_turn", self.prepare_next),
            "transformContext": ("transform_context", self.transform),
        }
        return {name: hook for key, (name, hook) in available.items() if key in self.config}

    # ---- drivers ---------------------------------------------------------------------------------

    async def emit(self, event: AgentEvent) -> None:
        data = event_json(event)
        self.events.append(data)
        if self.abort_on is not None and self.abort_on.fits(data):
            self.controller.abort()
        if "emit_delay_ms" in self.config:
            await asyncio.sleep(self.config["emit_delay_ms"] / 1000)

    abort_on: Matcher | None = None

    async def run(self) -> dict[str, Any]:
        trace: dict[str, Any] = {"events": self.events, "contexts": self.contexts}
        if self.scenario["driver"] == "agent":
            from .loop_agent_driver import AgentDriver

            trace["final_state"] = await AgentDriver(self).run()
        else:
            await self.run_loop(trace)
        if self.background:
            await asyncio.wait(self.background)
        if self.calls:
            trace["calls"] = self.calls
        return trace

    async def run_loop(self, trace: dict[str, Any]) -> None:
        scenario, config = self.scenario, self.config
        how = config.get("abort", {})
        self.abort_on = Matcher(how["on"]) if "on" in how else None
        if how.get("before_start"):
            self.controller.abort()
        if "after_ms" in how:
            asyncio.get_running_loop().call_later(how["after_ms"] / 1000, self.controller.abort)
        names = scenario.get("initial_tools")
        context = AgentContext(
            scenario.get("systemPrompt", ""),
            [to_message(m) for m in scenario.get("history", [])],
            self.tools if names is None else self.named_tools(names),
        )
        loop_config = LoopConfig(
            Model(scenario.get("model", "m1"), "api"),
            config.get("reasoning", "off"),
            config.get("toolExecution", "parallel"),
            StreamOptions(signal=self.controller.signal),
            self.stream,
            get_steering_messages=self.poll("steering", "pollSteering") if "steering" in config else None,
            get_follow_up_messages=self.poll("followUp", "pollFollowUp") if "followUp" in config else None,
            **self.hooks(),
        )
        try:
            if scenario["driver"] == "loop_continue":
                messages = await run_loop_continue(context, loop_config, self.emit)
            else:
                prompts = [to_message(m) for m in scenario.get("prompts", ["go"])]
                messages = await run_loop(prompts, context, loop_config, self.emit)
            trace["returned"] = roles(messages, ids=True)
        except Exception as error:
            trace["raised"] = str(error)


def shim(how: dict[str, Any], args: Any) -> Any:
    op = how["op"]
    if op == "rename":
        args = dict(args)
        if how["from"] in args:
            args[how["to"]] = args.pop(how["from"])
        return args
    if op == "set":
        return {**args, **how["values"]}
    if op == "return":
        return copy.deepcopy(how["value"])
    if op == "mutate":
        args.update(how["values"])
        return args
    if op == "parse_json":
        return json.loads(args) if isinstance(args, str) else args
    if op == "throw":
        raise ToolError(how["message"])
    return args


def roles(messages: Any, ids: bool = False) -> list[str]:
    out = []
    for message in messages:
        role = "toolResult" if message.role == "tool_result" else message.role
        out.append(f"{role}:{message.tool_call_id}" if ids and getattr(message, "tool_call_id", "") else role)
    return out


def run_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """The trace of our run, as JSON values."""
    return asyncio.run(Driver(copy.deepcopy(scenario)).run())
