"""One `%%agent` cell: the agent on its thread, the cell's thread in the pump, and what is shown of both."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Awaitable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from ..agent.agent import Agent
from ..agent.events import AgentEvent
from ..agent.execute_phase import ABANDONED, ABORTED
from ..agent.execution import result_message
from ..agent.hooks import Decision, Question
from ..agent.result import RunResult
from ..agent.tool import ExecutionMode, Tool
from ..ai.abort import AbortSignal
from ..ai.messages import UserMessage
from ..ai.model import Model, StreamOptions, ThinkingLevel
from ..errors import RunError
from ._typing import hear_last_words, said_by_now
from .agent_thread import AgentThread
from .approval import Always, ApproveMode, Approver, Questions, Rules
from .bridge import Bridge, who_can_answer
from .conversation import CellTurn, Conversation
from .faces import Face, make_face
from .host import NotebookHost
from .overlap import OverlapHint
from .past_runs import call_of, calls_of
from .prompt import RenderedPrompt
from .view import Outcome, RunView

REFRESHES_PER_SECOND = 15
LEAVE_AFTER = 0.75
"""Seconds after Stop or an interrupt until the cell is given back, whatever still runs."""


@dataclass
class RunRequest:
    """What one cell asks for."""

    model: Model
    prompt: RenderedPrompt
    tools: Sequence[Tool]
    turn: CellTurn
    system_prompt: str = ""
    notice: str = ""
    warnings: Sequence[str] = ()
    approve: ApproveMode = "ask"
    approve_timeout: float | None = None
    rules: Rules | None = None
    always: Always = field(default_factory=set)
    max_turns: int | None = 25
    max_cost: float | None = None
    thinking: ThinkingLevel = "off"
    tool_execution: ExecutionMode = "parallel"
    options: StreamOptions = field(default_factory=StreamOptions)


class CellRun:
    """Runs one request in the cell that is executing now. Made and run on the cell's thread.

    Attributes:
        view: What the run shows; stays after the run.
        result: What the run came to; set in every case.
        error: The exception that the cell should end with, if any: `KeyboardInterrupt`, or one of ours.
    """

    def __init__(self, shell: Any, conversation: Conversation, request: RunRequest) -> None:
        self.shell = shell
        self.conversation = conversation
        self.request = request
        self.turn = request.turn
        labels = {tool.name: tool.label for tool in request.tools}
        self.view = RunView(
            request.model.label,
            request.prompt.text,
            notice=request.notice,
            inserted=request.prompt.inserted,
            warnings=[*request.prompt.warnings, *request.warnings],
            max_turns=request.max_turns,
            labels=lambda name: labels.get(name, name),
        )
        self.turn.view = weakref.ref(self.view)
        self.result = RunResult()
        self.error: BaseException | None = None
        self._questions = Questions()
        self._ended = False
        self._left = False  # the cell has gone on: what comes now comes too late
        self._abort_at: float | None = None
        self._outcome: Outcome = "done"
        self._overlap = OverlapHint(request.tools, request.tool_execution == "sequential")

    # ---- the cell's thread -----------------------------------------------------------------------

    def run(self, thread: AgentThread | None) -> AgentThread | None:
        """Run to the end and show it. Returns the thread for the next run, None if this one is stuck."""
        self.bridge = bridge = Bridge(self.shell, on_interrupt=self._interrupt)
        answerer = who_can_answer(self.shell)
        with bridge:
            self.face: Face = make_face(answerer, self.shell, bridge, self.view, self)
            if thread is None or not thread.usable:
                thread = AgentThread(bridge.spawn)
            self.agent = self._make_agent(answerer != "nobody")
            self.face.start()
            work = thread.submit(self._work)
            try:
                bridge.wait(self._may_leave)
                hear_last_words(bridge, self.view)
            except KeyboardInterrupt:
                self._interrupt()
            self._left = True
            if not self._ended:
                thread.stop()
                thread = None
            else:
                self.error = _error_of(work)
            self._conclude()
            self.face.finish()
        return thread

    def _may_leave(self) -> bool:
        """Whether the cell's thread has nothing more to wait for."""
        late = self._abort_at is not None and time.monotonic() - self._abort_at > LEAVE_AFTER
        return self._ended or late

    def _interrupt(self) -> None:
        """A person interrupted the kernel."""
        self._outcome = "interrupted"
        self._abort("interrupted by the user")

    def stop(self) -> None:
        """A person clicked Stop. Any thread."""
        if self._outcome == "done":
            self._outcome = "stopped"
        self._abort("stopped by the user")

    def _abort(self, reason: str) -> None:
        if self._abort_at is None:
            self._abort_at = time.monotonic()
        self.agent.abort(reason)

    def steer(self, text: str) -> None:
        """A person typed a word into the run. Any thread."""
        if text.strip():
            self.view.steer(text)
            self.agent.steer(UserMessage(text))

    def answer(self, question: Question, decision: Decision) -> bool:
        """A person decided. Any thread; False if the question was settled before."""
        return self._questions.answer(question, decision)

    def _conclude(self) -> None:
        """Bring transcript, view, result and error to the same end, whatever happened on the other thread."""
        self.conversation.close_open_calls(self.turn, ABANDONED.format(seconds=LEAVE_AFTER), ABORTED)
        if not self._ended:
            self.result = RunResult(list(self.turn.messages), self.result.tool_calls)
        if self._outcome == "interrupted":
            self.error = KeyboardInterrupt()
        elif self.error is not None:
            self._outcome = "failed"
            self.view.notice(f"{type(self.error).__name__}: {self.error}", "error")
        elif self.result.stop_reason == "error":
            self._outcome = "failed"
            self.error = RunError(self.result.error_message or "The model's reply failed.")
        if self.result.stopped_by:
            self.view.notice(self.result.stopped_by, "warning")
        self.view.finish(self._outcome)
        self.conversation.end(self.turn, self._outcome, calls_of(self.view))

    # ---- the agent's thread ----------------------------------------------------------------------

    def _make_agent(self, somebody: bool) -> Agent:
        request = self.request
        options = request.options
        options.on_retry = self.view.retrying
        approver = Approver(
            request.approve,
            self._ask_person if somebody else None,
            request.rules,
            request.always,
            request.approve_timeout,
            self._decided,
        )
        earlier = [m for turn in self.conversation.turns if turn is not self.turn for m in turn.messages]
        agent = Agent(
            model=request.model,
            tools=request.tools,
            system_prompt=request.system_prompt,
            messages=earlier,
            thinking_level=request.thinking,
            tool_execution=request.tool_execution,
            max_turns=request.max_turns,
            max_cost=request.max_cost,
            approve=approver,
            host=NotebookHost(self.shell, self.bridge, self._begun),
            options=options,
        )
        agent.subscribe(self._listen)
        return agent

    def _listen(self, event: AgentEvent, signal: AbortSignal) -> Awaitable[None] | None:
        if self._left:
            return None
        if event.type == "agent_start" and self._abort_at is not None:
            self.agent.abort("stopped by the user")  # the click came before there was a run to abort
        if event.type == "message_end":
            self.conversation.add(self.turn, event.message)
            for text in self.conversation.take_notices():
                self.view.notice(text, "warning")
        self.view.apply(event)
        self._keep_call(event)
        if hint := self._overlap.hear(event):
            self.view.notice(hint)
        return said_by_now(self.bridge, self.view) if event.type == "turn_end" and not signal.aborted else None

    def _begun(self, call_id: str) -> None:
        """A call's own code begins. Any thread."""
        self.conversation.call_began(self.turn, call_id)
        self.view.running(call_id)

    def _keep_call(self, event: AgentEvent) -> None:
        """Keep on disk how far a call came: the messages of its batch may never be."""
        if event.type == "tool_execution_start":
            tool = next((tool for tool in self.agent.state.tools if tool.name == event.tool_name), None)
            if tool is not None and tool.runs_on == "executor":  # when it begins there is heard only later, or never
                self.conversation.call_began(self.turn, event.tool_call_id)
        elif event.type == "tool_execution_end":
            ended = (row for row in reversed(self.view.rows) if row.tool_call_id == event.tool_call_id and row.final)
            shown = next(map(call_of, ended), {})
            message = result_message(event.tool_call_id, event.tool_name, event.result)
            self.conversation.call_ended(self.turn, message, shown)

    async def _work(self) -> None:
        ticker = asyncio.ensure_future(self._tick())
        try:
            if self._abort_at is None:
                result = await self.agent.prompt(UserMessage(self.request.prompt.content))
                if not self._left:
                    self.result = result
        finally:
            ticker.cancel()
            self._ended = True
            self.bridge.wake()

    async def _tick(self) -> None:
        """Redraw at most `REFRESHES_PER_SECOND` times a second, and once a second for the clock."""
        drawn, at, behind = -1, 0.0, False
        while not self._left:
            now = time.monotonic()
            if self.view.version != drawn or behind or now - at >= 1:
                drawn, at = self.view.version, now
                behind = self.face.refresh()
            await asyncio.sleep(1 / REFRESHES_PER_SECOND)

    async def _ask_person(self, question: Question) -> Decision:
        self.view.ask(question)
        answer = self._questions.open(question)
        asking = asyncio.ensure_future(self.face.ask(question))
        try:
            either: set[asyncio.Future[Any]] = {answer, asking}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            decision = answer.result() if answer.done() else await asking or await answer
        finally:
            answer.cancel()
            asking.cancel()
        self.view.answered(question, decision)
        return decision

    def _decided(self, question: Question, decision: Decision) -> None:
        """A rule, an option or the clock decided."""
        if question.required or decision.kind == "block":
            self.view.ask(question)
            self.view.answered(question, decision)


def _error_of(work: Future[None]) -> BaseException | None:
    """What ended the work that has said it is over: a bug of ours, since failures of a run are its result."""
    try:
        return work.exception(timeout=LEAVE_AFTER)
    except (CancelledError, TimeoutError):
        return None
