"""The parts of a run as it is displayed: texts, rows of tool calls, steering messages, notices.

Plain data. `RunView` alone changes it; whoever draws compares `version` with the one drawn last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from ..agent.execute_phase import ABANDONED, ABORTED, INTERRUPTED
from ..agent.execution import TRUNCATED
from ..agent.output import as_shown
from ..agent.tool import Progress, ToolResult
from ..ai.abort import Aborted
from ..ai.json_arguments import partial_arguments
from .conversation import KERNEL_ENDED

if TYPE_CHECKING:
    from ..agent.hooks import Decision, Question

State: TypeAlias = Literal["queued", "waiting for you", "running", "done", "failed", "blocked", "stopped"]
Level: TypeAlias = Literal["info", "warning", "error"]

_ABANDONED = ABANDONED.partition("{")[0]
_TRUNCATED = TRUNCATED.partition("{")[0]
# Arguments still arriving are shown as far as this many characters: the whole may be megabytes.
_SHOWN_RAW = 2_000


@dataclass(slots=True, eq=False)
class Text:
    """Markdown of the model, or its thinking. `open` while it grows."""

    kind: Literal["text", "thinking"]
    started: float
    pieces: list[str] = field(default_factory=list)
    open: bool = True
    ended: float | None = None
    version: int = 0

    @property
    def source(self) -> str:
        """All pieces joined."""
        return "".join(self.pieces)


class ConsoleTail:
    """The last lines of what a tool wrote, whatever it wrote: at most `LIMIT` characters, in O(1) per piece."""

    __slots__ = ("_kept", "_pieces", "dropped")
    LIMIT: ClassVar[int] = 20_000

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._kept = 0
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def write(self, text: str) -> None:
        if len(text) > self.LIMIT:
            self.dropped += len(text) - self.LIMIT
            text = text[-self.LIMIT :]
        self._pieces.append(text)
        self._kept += len(text)
        while self._kept > self.LIMIT:
            oldest = self._pieces.popleft()
            surplus = min(self._kept - self.LIMIT, len(oldest))
            self.dropped += surplus
            self._kept -= surplus
            if surplus < len(oldest):
                self._pieces.appendleft(oldest[surplus:])

    @property
    def text(self) -> str:
        """What is kept, as a terminal shows it: of a line that was rewritten only its last form."""
        if len(self._pieces) > 1:
            self._pieces = deque(["".join(self._pieces)])
        return as_shown("".join(self._pieces))


@dataclass(slots=True, eq=False)
class Row:
    """One tool call.

    `arguments` are the model's own until a question shows, or an edit makes, other ones: what is shown is what runs.
    `model_arguments` stay the model's. `table` is sanitised HTML of a table that the tool returned, or "".
    """

    tool_call_id: str
    name: str
    label: str
    state: State = "queued"
    writing: bool = False
    arguments: Any = None
    model_arguments: Any = None
    raw_length: int = 0
    progress: Progress | None = None
    console: ConsoleTail = field(default_factory=ConsoleTail)
    partial: ToolResult | None = None
    result: ToolResult | None = None
    table: str = ""
    question: Question | None = None
    decision: Decision | None = None
    started: float | None = None
    ended: float | None = None
    duration_ms: int | None = None
    begun: bool = False
    version: int = 0
    kind: ClassVar[Literal["row"]] = "row"
    _raw: str = ""

    @property
    def final(self) -> bool:
        """Whether the call has its result."""
        return self.ended is not None

    def write_arguments(self, delta: str) -> None:
        self.raw_length += len(delta)
        if len(self._raw) < _SHOWN_RAW:
            self._raw += delta

    @property
    def shown_arguments(self) -> Any:
        """The arguments as far as they are known; while they arrive, a forgiving reading of their beginning."""
        return partial_arguments(self._raw) if self.writing else self.arguments

    def seconds(self, now: float) -> float | None:
        """How long the call has been or was running; None if it never began."""
        if self.duration_ms is not None:
            return self.duration_ms / 1000
        if self.started is None or not (self.begun or self.state == "waiting for you"):
            return None
        return (self.ended or now) - self.started


@dataclass(slots=True, eq=False)
class Steering:
    """What a person said into the run, where the model got it."""

    text: str
    version: int = 0
    kind: ClassVar[Literal["steering"]] = "steering"


@dataclass(slots=True, eq=False)
class Notice:
    """A word of ours about the run."""

    text: str
    level: Level = "info"
    version: int = 0
    kind: ClassVar[Literal["notice"]] = "notice"


Item: TypeAlias = Text | Row | Steering | Notice


def end_state(row: Row, result: ToolResult) -> State:
    """Why a call has an error result: a refusal has neither begun nor an exception behind it."""
    text = result.text
    if row.decision is not None and row.decision.kind == "block":
        return "blocked"
    if isinstance(result.error, Aborted) or text in (ABORTED, INTERRUPTED, KERNEL_ENDED) or text.startswith(_ABANDONED):
        return "stopped"
    refused = not row.begun and result.duration_ms is None and result.error is None
    named = not text.startswith((_TRUNCATED, "There is no tool named", "Validation failed for tool"))
    return "blocked" if refused and named else "failed"
