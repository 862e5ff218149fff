"""How a run shows itself: a live card in a front end, text in a terminal, a growing transcript where nobody watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..agent.hooks import Decision, Question
from ..agent.workers import outcome_of
from ..ai.messages import now_ms
from .bridge import Answerer, Bridge, running_cell
from .transcript import TextPrinter, render_text, static_bundle, visible
from .view import RunView

DRAWN_WITHIN = 1.0
"""Seconds within which a page that can draw a card has drawn it."""
UNSEEN_AFTER = 5.0
"""Seconds until a card that no front end has drawn is taken for one that nobody can see."""


class Controls(Protocol):
    """What a person can do to a run. Any thread."""

    def stop(self) -> None: ...

    def steer(self, text: str) -> None: ...

    def answer(self, question: Question, decision: Decision) -> bool: ...


class Face(Protocol):
    """One way of showing a run."""

    def start(self) -> None:
        """Show it for the first time. On the cell's thread."""

    def refresh(self) -> bool:
        """Show what has changed; True if a part of it waits for the next time. On the agent's thread."""

    async def ask(self, question: Question) -> Decision | None:
        """Ask a person; None: the answer will come through `Controls.answer`."""

    def finish(self) -> None:
        """Leave the static transcript behind. On the cell's thread, after the last refresh."""


def make_face(answerer: Answerer, shell: Any, bridge: Bridge, view: RunView, controls: Controls) -> Face:
    """The face for whoever can answer."""
    if answerer == "terminal":
        return TerminalFace(bridge, view)
    if answerer == "nobody":
        return TranscriptFace(bridge, view)
    return CardFace(bridge, view, controls, drawn_for_sure=running_cell(shell)[1] is not None)


class TerminalFace:
    """Plain text as it comes; questions by `input()`, one at a time, and nothing is written while one stands."""

    def __init__(self, bridge: Bridge, view: RunView) -> None:
        self._bridge = bridge
        self._printer = TextPrinter(view, sys.stdout.write, color=sys.stdout.isatty())
        self._turn = asyncio.Lock()
        self._prompting = False

    def start(self) -> None:
        self.refresh()

    def refresh(self) -> bool:
        if not self._prompting:
            self._printer.refresh()
        return self._prompting

    async def ask(self, question: Question) -> Decision | None:
        async with self._turn:
            self.refresh()
            self._prompting = True
            return await outcome_of(self._bridge.call(lambda: prompt_person(question, self._read)))

    def _read(self, prompt: str) -> str:
        self._prompting = True
        try:
            return input_at_terminal(prompt)
        finally:  # not before: a question that is given up still stands at the terminal
            self._prompting = False

    def finish(self) -> None:
        self._printer.refresh()


class TranscriptFace:
    """The static transcript, replaced as it grows, at most `1 / INTERVAL` times a second. Nobody can answer here."""

    INTERVAL = 0.5

    def __init__(self, bridge: Bridge, view: RunView) -> None:
        self._bridge = bridge
        self._view = view
        self._id = f"pi-notebook-{now_ms()}-{id(view)}"
        self._drawn = -1
        self._at = 0.0

    def start(self) -> None:
        self._publish({"text/plain": render_text(self._view)}, update=False)

    def refresh(self) -> bool:
        now = time.monotonic()
        if self._view.version != self._drawn and now - self._at >= self.INTERVAL:
            self._drawn, self._at = self._view.version, now
            self._publish({"text/plain": render_text(self._view)})
        return False

    async def ask(self, question: Question) -> Decision | None:
        return None

    def finish(self) -> None:
        self._publish(static_bundle(self._view))

    def _publish(self, data: dict[str, Any], update: bool = True) -> None:
        self._bridge.publish(data, display_id=self._id, update=update)


class CardFace:
    """The live card. Where no front end draws it, or clicks cannot arrive, questions are asked by `input()`."""

    def __init__(self, bridge: Bridge, view: RunView, controls: Controls, *, drawn_for_sure: bool) -> None:
        from .card import Card
        from .display import CardDisplay

        self._bridge = bridge
        self._view = view
        self._drawn = drawn_for_sure
        self._card = Card(view, stop=controls.stop, answer=controls.answer, steer=controls.steer)
        self._display = CardDisplay(self._card, view, bridge.publish)
        self._started = 0.0

    def start(self) -> None:
        self._display.show()
        self._started = time.monotonic()

    def refresh(self) -> bool:
        return self._card.refresh()

    async def ask(self, question: Question) -> Decision | None:
        self._card.refresh()
        if self._bridge.mode != "none":
            while not self._card.view_count:
                if time.monotonic() - self._started > UNSEEN_AFTER:
                    break
                await asyncio.sleep(0.05)
            else:
                return None
        return await outcome_of(self._bridge.call(lambda: prompt_person(question, input)))

    def finish(self) -> None:
        if not self._drawn:  # a console takes no updates of what it has shown: it needs the transcript as new output
            left = DRAWN_WITHIN - (time.monotonic() - self._started)
            seen = self._bridge.wait(lambda: self._card.view_count > 0, max(0.0, left))
            if not seen:
                self._bridge.publish(static_bundle(self._view))
        self._display.finish(page_reloaded=self._bridge.page_reloaded)


def prompt_person(question: Question, read: Callable[[str], str]) -> Decision:
    """Read the answer to what exactly would run: y, n, a (always), or a reason to block.

    Args:
        read: As `input`. The whole question is in its prompt: what is printed may be captured, and then whoever
            answers would not see it. EOFError: nobody can be asked.
    """
    prompt = f"{question_text(question)}\nRun it? [y]es, [n]o, [a]lways, or a reason to block: "
    while True:
        try:
            words = read(prompt).strip()
        except EOFError:
            return Decision("block", "Blocked: nobody could be asked.", by="nobody there")
        answer = words.lower()
        if answer in ("y", "yes"):
            return Decision("approve")
        if answer in ("n", "no"):
            return Decision("block")
        if answer in ("a", "always"):
            return Decision("always")
        if words:
            return Decision("block", words)


def input_at_terminal(prompt: str) -> str:
    """`input` that shows its prompt in the terminal, also where standard output is captured or goes to a file.

    Raises:
        EOFError: Nobody answers, or whoever types there cannot be shown anything.
    """
    streams = [stream for stream in (sys.stdout, sys.__stdout__, sys.__stderr__) if stream is not None]
    terminal = next((stream for stream in streams if stream.isatty()), None)
    if terminal is None and sys.stdin.isatty():
        raise EOFError
    with contextlib.redirect_stdout(terminal or sys.__stdout__):
        return input(prompt)


def question_text(question: Question) -> str:
    """The question as plain text, control and direction characters made visible."""
    lines = [
        f"? {visible(question.tool.name)} wants to run" + (f" ({visible(question.reason)})" if question.reason else "")
    ]
    for name, value in question.arguments.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
        body = visible(shown, keep_newlines=True).split("\n")
        lines.append(f"    {visible(name)} = {body[0]}")
        lines.extend(f"        {line}" for line in body[1:])
    if question.error:
        lines.append(f"    ({visible(question.error)})")
    return "\n".join(lines)
