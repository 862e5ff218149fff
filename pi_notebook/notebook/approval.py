"""Who decides whether a tool call runs: the options of the cell, the user's rules, a person.

`Question` and `Decision` are the agent's (`agent/hooks.py`); here is who answers them in a notebook.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ..agent.hooks import Decision, Question
from ..agent.tool import Tool
from .rules import NOBODY_REASON, Rules, Verdict

__all__ = ["Always", "Approver", "Decision", "Question", "Questions", "Rules"]

ApproveMode: TypeAlias = Literal["ask", "all", "none"]
APPROVE_MODES = ("ask", "all", "none")

MODE_NONE_REASON = "Blocked: this tool needs a person's approval, and this run was started with --approve none."
TIMEOUT_REASON = "Blocked: nobody answered within {seconds:g} s."
PERSON_REASON = "The user blocked this call."

Always: TypeAlias = set[tuple[Tool, str]]
"""What a person allowed for good: a tool, and "" or the rule that asked. A redefined tool is another one."""


class Questions:
    """Questions that stand open, and the one place where an answer is taken. Answers may come from any thread."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Question, asyncio.Future[Decision], asyncio.AbstractEventLoop]] = {}

    def open(self, question: Question) -> asyncio.Future[Decision]:
        """Let `question` stand until `answer` or the future's cancellation. Belongs to the agent's loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Decision] = loop.create_future()
        self._open[id(question)] = (question, future, loop)
        future.add_done_callback(lambda _: self._open.pop(id(question), None))
        return future

    def answer(self, question: Question, decision: Decision) -> bool:
        """Settle `question`, from any thread; False if it was settled before (a second click does nothing)."""
        entry = self._open.pop(id(question), None)
        if entry is None:
            return False
        _, future, loop = entry

        def settle() -> None:
            if not future.done():
                future.set_result(decision)

        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the run is over and its loop closed
            return False
        return True


@dataclass
class Approver:
    """The agent's `approve` seam in a notebook.

    A rule that blocks comes first, whatever else is said. Then, for what would be asked: `--approve all`, what a person
    allowed for good, `--approve none`, and the person.

    Args:
        mode: `--approve`. `all` asks nothing, `none` blocks whatever would ask.
        ask_person: Shows the question and returns the person's answer; None: nobody is there.
        rules: The user's.
        always: What a person allowed for good; kept from run to run. Whoever allows a tool that asked by itself is
            still asked where a rule says so; whoever allows a tool that a rule asked for is not asked again by that
            rule, nor by the tool.
        timeout: Seconds that a question may stand; None for ever.
        told: Called with each question that was decided without a person, for the transcript.
    """

    mode: ApproveMode = "ask"
    ask_person: Callable[[Question], Awaitable[Decision]] | None = None
    rules: Rules | None = None
    always: Always = field(default_factory=set)
    timeout: float | None = None
    told: Callable[[Question, Decision], Any] | None = None

    async def __call__(self, question: Question) -> Decision:
        verdict = self.rules.judge(question) if self.rules is not None else None
        decision = self._without_person(question, verdict)
        if decision is not None:
            if decision.by:
                self._tell(question, decision)
            return decision
        assert self.ask_person is not None
        if verdict is not None and not question.reason:
            question.reason = verdict.by
        try:
            decision = await asyncio.wait_for(self.ask_person(question), self.timeout)
        except TimeoutError:
            decision = Decision("block", TIMEOUT_REASON.format(seconds=self.timeout), by="the time limit")
            self._tell(question, decision)
        if decision.kind == "always":
            self.always |= {(question.tool, ""), (question.tool, verdict.rule if verdict is not None else "")}
        if decision.kind == "block" and not decision.reason:
            return replace(decision, reason=PERSON_REASON)
        if decision.kind == "block" and decision.by == "you":
            return replace(decision, reason=f"{PERSON_REASON} Reason: {decision.reason}")
        return decision

    def _tell(self, question: Question, decision: Decision) -> None:
        if self.told is not None:
            self.told(question, decision)

    def _without_person(self, question: Question, verdict: Verdict | None) -> Decision | None:
        """The answer if no person is needed. `by` is empty where nothing was to be decided."""
        if verdict is not None and verdict.kind == "block":
            return Decision("block", verdict.reason, by=verdict.by)
        asks = question.required if verdict is None else verdict.kind == "ask"
        if not asks:
            return Decision("approve", by=verdict.by if verdict is not None and question.required else "")
        if question.error:  # an answer of a person could not be taken: only the person can give another
            return None
        if self.mode == "all":
            return Decision("approve", by="--approve all")
        if (question.tool, verdict.rule if verdict is not None else "") in self.always:
            return Decision("approve", by="an earlier Always allow")
        if self.mode == "none":
            return Decision("block", MODE_NONE_REASON, by="--approve none")
        if self.ask_person is None:
            return Decision("block", NOBODY_REASON, by="nobody there")
        return None
