"""Who decides whether a tool call runs: the options of the cell, the user's rules, a person.

`Question` and `Decision` are the agent's (`agent/hooks.py`); here is who answers them in a notebook.
"""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..agent.hooks import Decision, Question
from ..agent.tool import Tool
from ..errors import PiNotebookError

__all__ = ["Approver", "Decision", "Question", "Questions", "Rules"]

ApproveMode: TypeAlias = Literal["ask", "all", "none"]
Verdict: TypeAlias = tuple[Literal["allow", "ask", "block"], str]

NOBODY_REASON = (
    "Blocked: this tool needs a person's approval, and nobody could be asked (the notebook runs without a person). "
    "Go on without it, or say what you would have done."
)
MODE_NONE_REASON = "Blocked: this tool needs a person's approval, and this run was started with --approve none."
TIMEOUT_REASON = "Blocked: nobody answered within {seconds:g} s."
PERSON_REASON = "The user blocked this call."

_PATTERN = re.compile(r"([A-Za-z0-9_*?-]+)(?:\((.*)\))?", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Through one of these a shell goes on to another command: an allowed beginning says nothing about it.
_SHELL_CONTROL = frozenset(";&|`\n\r<>()$")


@dataclass(frozen=True)
class Pattern:
    """`tool`, `tool(glob)` or `tool(name=glob)`: calls of a tool, by its name and one of its arguments.

    The glob is matched against the whole argument: the named one, else the first that the tool's schema requires
    (or lists). Arguments that are no text are matched in JSON form.
    """

    source: str
    tool: str
    argument: str | None
    glob: str | None

    @classmethod
    def parse(cls, source: str) -> Pattern:
        """Raises `PiNotebookError` for what is no pattern."""
        match = _PATTERN.fullmatch(source.strip()) if isinstance(source, str) else None
        if match is None:
            raise PiNotebookError(
                f"Rule {source!r} is no pattern: write a tool's name, 'bash(git status*)' or 'write(path=out/*)'."
            )
        tool, inner = match.groups()
        named = _NAMED.fullmatch(inner) if inner is not None else None
        if named is not None:
            return cls(source, tool, named[1], named[2])
        return cls(source, tool, None, inner)

    def fits(self, question: Question, *, strict: bool) -> bool:
        """Whether this is about the call. `strict`: wildcards do not reach over shell control characters."""
        if not fnmatch.fnmatchcase(question.tool.name, self.tool):
            return False
        if self.glob is None:
            return True
        text = _argument_text(question, self.argument)
        if text is None:
            return False
        if strict and _SHELL_CONTROL & set(text) - set(self.glob):
            return False
        return fnmatch.fnmatchcase(text, self.glob)


def _argument_text(question: Question, name: str | None) -> str | None:
    if name is None:
        schema = question.tool.schema
        names = [*schema.get("required", ()), *schema.get("properties", ())]
        name = next((n for n in names if n in question.arguments), None)
    value = question.arguments.get(name) if name is not None else None
    if value is None or isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False, default=repr)


class Rules:
    """What may run unasked, what must not run, and what is asked for even if the tool does not ask.

        Rules(allow=["read", "bash(git status*)"], block={"bash(rm *)": "not here"}, ask=["write(path=/*)"])

    `block` wins over `ask`, `ask` over `allow`; a call that no rule fits is decided by its tool. In `allow`, a wildcard
    does not reach over the characters that chain shell commands (`; & | $ ( ) < >` and line ends), so that
    `bash(git status*)` does not allow `git status; rm -rf .`; such a call is asked for.

    Args:
        allow, ask: Patterns (see `Pattern`).
        block: Patterns, or a mapping from patterns to the reason that the model is given.
    """

    def __init__(
        self,
        allow: Sequence[str] = (),
        block: Mapping[str, str] | Sequence[str] = (),
        ask: Sequence[str] = (),
    ) -> None:
        for name, given in (("allow", allow), ("ask", ask), ("block", block)):
            if isinstance(given, str):
                raise PiNotebookError(f"Rules({name}=...) takes a list of patterns, not one string: [{given!r}].")
        reasons = block if isinstance(block, Mapping) else dict.fromkeys(block, "")
        self.allow = [Pattern.parse(source) for source in allow]
        self.ask = [Pattern.parse(source) for source in ask]
        self.block = [(Pattern.parse(source), reason) for source, reason in reasons.items()]

    def judge(self, question: Question) -> Verdict | None:
        """What the rules say about the call, and why; None if none fits."""
        for pattern, reason in self.block:
            if pattern.fits(question, strict=False):
                return "block", reason or f"Blocked by the user's rule {pattern.source!r}."
        for pattern in self.ask:
            if pattern.fits(question, strict=False):
                return "ask", f"rule {pattern.source!r}"
        for pattern in self.allow:
            if pattern.fits(question, strict=True):
                return "allow", f"rule {pattern.source!r}"
        return None

    def __repr__(self) -> str:
        block = {pattern.source: reason for pattern, reason in self.block}
        return f"Rules(allow={[p.source for p in self.allow]}, block={block}, ask={[p.source for p in self.ask]})"


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

    Args:
        mode: `--approve`. `all` asks nothing (rules that block still do), `none` blocks whatever would ask.
        ask_person: Shows the question and returns the person's answer; None: nobody is there.
        rules: The user's.
        always: Tools that a person allowed for good; a redefined tool is another object and asks again.
        timeout: Seconds that a question may stand; None for ever.
        told: Called with each question that was decided without a person, for the transcript.
    """

    mode: ApproveMode = "ask"
    ask_person: Callable[[Question], Awaitable[Decision]] | None = None
    rules: Rules | None = None
    always: set[Tool] = field(default_factory=set)
    timeout: float | None = None
    told: Callable[[Question, Decision], Any] | None = None

    async def __call__(self, question: Question) -> Decision:
        decision = self._without_person(question)
        if decision is not None:
            if self.told is not None and decision.by:
                self.told(question, decision)
            return decision
        assert self.ask_person is not None
        try:
            decision = await asyncio.wait_for(self.ask_person(question), self.timeout)
        except TimeoutError:
            decision = Decision("block", TIMEOUT_REASON.format(seconds=self.timeout), by="time limit")
            if self.told is not None:
                self.told(question, decision)
        if decision.kind == "always":
            self.always.add(question.tool)
        if decision.kind == "block" and not decision.reason:
            return Decision("block", PERSON_REASON, None, decision.by, decision.at)
        if decision.kind == "block" and decision.by == "you":
            text = f"{PERSON_REASON} Reason: {decision.reason}"
            return Decision("block", text, None, decision.by, decision.at)
        return decision

    def _without_person(self, question: Question) -> Decision | None:
        """The answer if none is needed. `by` is empty where nothing was to be decided."""
        verdict = self.rules.judge(question) if self.rules is not None else None
        if verdict is not None and verdict[0] == "block":
            return Decision("block", verdict[1], by="rule")
        asks = question.required if verdict is None else verdict[0] == "ask"
        if not asks:
            return Decision("approve", by=verdict[1] if verdict is not None and question.required else "")
        if question.error:  # an answer of a person could not be taken: only the person can give another
            return None
        if self.mode == "all":
            return Decision("approve", by="--approve all")
        if question.tool in self.always and verdict is None:
            return Decision("approve", by="always allowed")
        if self.mode == "none":
            return Decision("block", MODE_NONE_REASON, by="--approve none")
        if self.ask_person is None:
            return Decision("block", NOBODY_REASON, by="nobody there")
        return None
