"""The steps of an `agent` scenario on our stateful Agent."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.events import AgentEvent
from pi_notebook.ai.abort import AbortSignal
from pi_notebook.ai.message_json import block_from_json
from pi_notebook.ai.model import Model
from pi_notebook.errors import AgentError

from .loop_driver import Driver, Matcher, event_json, roles, to_message


class AgentDriver:
    """The steps of an `agent` scenario on our Agent."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        scenario, config = driver.scenario, driver.config
        names = scenario.get("initial_tools")
        self.agent = agent = Agent(
            model=Model(scenario.get("model", "m1"), "api"),
            tools=driver.tools if names is None else driver.named_tools(names),
            system_prompt=scenario.get("systemPrompt", ""),
            messages=[to_message(m) for m in scenario.get("history", [])],
            thinking_level=config.get("reasoning", "off"),
            tool_execution=config.get("toolExecution", "parallel"),
            steering_mode=config.get("steeringMode", "one-at-a-time"),
            follow_up_mode=config.get("followUpMode", "one-at-a-time"),
            stream=driver.stream,
            **driver.hooks(),
        )
        driver.abort = agent.abort
        self.triggers = [(Matcher(t["on"]), t["do"]) for t in scenario.get("triggers", [])]
        self.unsubscribe = {"main": agent.subscribe(self.record)}
        self.tasks: dict[str, asyncio.Future[None]] = {}
        for listener in scenario.get("listeners", []):
            self.unsubscribe[listener["id"]] = agent.subscribe(self.make_listener(listener))

    def make_listener(self, spec: dict[str, Any]) -> Any:
        matcher = Matcher(spec["on"])

        async def listen(event: AgentEvent, signal: AbortSignal) -> None:
            if not matcher.fits(event_json(event)):
                return
            if "delay_ms" in spec:
                await asyncio.sleep(spec["delay_ms"] / 1000)
            if "mark" in spec:
                self.mark(spec["mark"])
            if "throw" in spec:
                raise RuntimeError(spec["throw"])

        return listen

    def mark(self, label: str, **more: Any) -> None:
        self.driver.events.append({"type": "@mark", "label": label, **more})

    async def record(self, event: AgentEvent, signal: AbortSignal) -> None:
        data = event_json(event)
        self.driver.events.append(data)
        for matcher, steps in self.triggers:
            if matcher.fits(data):
                for step in steps:
                    await self.step(step)

    def state(self) -> dict[str, Any]:
        state, signal = self.agent.state, self.agent.signal
        streaming = state.streaming_message
        return {
            "isStreaming": state.is_streaming,
            "messages": roles(state.messages),
            "errorMessage": state.error_message,
            "pendingToolCalls": sorted(state.pending_tool_calls),
            "streamingMessage": roles([streaming])[0] if streaming else None,
            "hasQueued": self.agent.has_queued_messages(),
            "signal": None if signal is None else "aborted" if signal.aborted else "active",
        }

    async def run(self) -> dict[str, Any]:
        for step in self.driver.scenario["steps"]:
            await self.step(step)
        await self.agent.wait_for_idle()
        return self.state()

    async def step(self, step: dict[str, Any]) -> None:
        do = step["do"]
        if "background" in step:
            self.tasks[step["background"]] = asyncio.ensure_future(self.perform(do, step))
            await asyncio.sleep(0)
        elif do in ("prompt", "continue", "reset", "waitForIdle"):
            await self.marked(do, step)
        elif do == "await":
            await self.tasks[step["label"]]
            self.mark(f"await:{step['label']}")
        elif do == "sleep":
            await asyncio.sleep(step["ms"] / 1000)
        elif do == "state":
            self.mark("state", state=self.state())
        elif do == "unsubscribe":
            self.unsubscribe[step["id"]]()
        else:
            self.plain_step(do, step)

    def plain_step(self, do: str, step: dict[str, Any]) -> None:
        agent = self.agent
        if do == "steer":
            agent.steer(step["text"])
        elif do == "followUp":
            agent.follow_up(step["text"])
        elif do == "abort":
            agent.abort()
        elif do == "clearSteeringQueue":
            agent.clear_steering_queue()
        elif do == "clearFollowUpQueue":
            agent.clear_follow_up_queue()
        elif do == "clearAllQueues":
            agent.clear_all_queues()
        elif do == "setTools":
            agent.state.tools = self.driver.named_tools(step["names"])
        elif do == "setModel":
            agent.state.model = Model(step["model"], "api")
        elif do == "setThinking":
            agent.state.thinking_level = step["level"]
        elif do == "setSteeringMode":
            agent.steering_mode = step["mode"]
        elif do == "setFollowUpMode":
            agent.follow_up_mode = step["mode"]
        else:
            raise ValueError(f"unknown step {do}")

    async def perform(self, do: str, step: dict[str, Any]) -> None:
        if do == "prompt":
            await self.prompt(step)
        elif do == "continue":
            await self.agent.continue_()
        elif do == "reset":
            self.agent.reset()
        else:
            await self.agent.wait_for_idle()

    async def marked(self, do: str, step: dict[str, Any]) -> None:
        try:
            await self.perform(do, step)
        except AgentError as error:
            self.mark(f"{do}:error", error=str(error))
        else:
            self.mark(f"{do}:ok")

    async def prompt(self, step: dict[str, Any]) -> None:
        if "messages" in step:
            await self.agent.prompt([to_message(m) for m in step["messages"]])
        elif "message" in step:
            await self.agent.prompt(to_message(step["message"]))
        else:
            images = [block_from_json(block) for block in step.get("images", [])]
            await self.agent.prompt(step["text"], images)
