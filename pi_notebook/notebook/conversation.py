"""Which cell said what: the turns of one notebook's conversation, in the order in which they ran."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..ai.messages import Message, TextContent, ToolCall, ToolResultMessage, now_ms
from .records import SCHEMA_VERSION, Record, bounded, message_record

if TYPE_CHECKING:
    from .store import ConversationLog
    from .view import RunView

CellKey = tuple[str, int]
"""Cell id and ordinal of the agent's call within one execution of that cell."""

THIS_KERNEL = uuid.uuid4().hex

KERNEL_ENDED = (
    "This tool call was interrupted: the kernel ended before there was a result. "
    "It is not known how far the tool came; what it had done by then may stay done."
)
NEVER_BEGAN = "This tool call did not run: the kernel ended before it began."


@dataclass
class CallsSoFar:
    """How far the calls of a turn's last reply came: their results are messages only when all of a batch have ended.

    Args:
        began: Ids of those whose own code began, in that order.
        ended: What they came to, each with what the transcript tells of it (see `past_runs`).
    """

    began: list[str] = field(default_factory=list)
    ended: list[tuple[ToolResultMessage, Record]] = field(default_factory=list)

    def results(self, calls: Iterable[ToolCall], interrupted: str, not_run: str) -> Iterator[ToolResultMessage]:
        """One for each of `calls`: what it came to, else an error that says one of the two."""
        began, ended = list(self.began), [result for result, _ in self.ended]
        for call in calls:
            result = next((each for each in ended if each.tool_call_id == call.id), None)
            ended = [each for each in ended if each is not result]
            text = interrupted if call.id in began else not_run
            if call.id in began:
                began.remove(call.id)
            yield result or _failure(call, text)


@dataclass(eq=False)
class CellTurn:
    """What one run of one agent cell added.

    Args:
        key: Which cell it was, across runs; None where the front end does not say.
        prompt: The cell's text, as it was typed.
        messages: Prompt, replies and results. Only `Conversation` adds to it.
        execution_count: The n of the cell's In[n].
        line: What stood behind `%%agent`.
        outcome: How the run ended (see `RunView.outcome`); None while it runs, and if the kernel died in it.
        is_earlier: An earlier kernel ran it.
        calls: What the transcript tells of each call besides its result (see `past_runs`); known at the end.
        so_far: How far the calls came that have no result yet; None where an older version did not tell.
        view: Gives what the run showed, as long as somebody holds that.
    """

    key: CellKey | None
    prompt: str
    messages: list[Message] = field(default_factory=list)
    execution_count: int | None = None
    line: str = ""
    outcome: str | None = None
    is_earlier: bool = False
    time: int = field(default_factory=now_ms)
    calls: Sequence[Record] = ()
    so_far: CallsSoFar | None = field(default_factory=CallsSoFar, repr=False)
    view: Callable[[], RunView | None] | None = field(default=None, repr=False)
    number: int = field(default=0, init=False)
    parent: CellTurn | None = field(default=None, init=False, repr=False)
    instead: CellTurn | None = field(default=None, init=False, repr=False)

    @property
    def label(self) -> str:
        """The cell as people know it: `[3]`."""
        count = " " if self.execution_count is None else str(self.execution_count)
        return f"earlier [{count}]" if self.is_earlier else f"[{count}]"


@dataclass(frozen=True)
class Rewound:
    """What running a cell again took out: the turn it replaces and those that had followed it."""

    replaced: CellTurn
    followed: tuple[CellTurn, ...]


@dataclass(frozen=True)
class Undone:
    """What `undo` took out, and what it brought back instead: the turns that a re-run had taken out."""

    taken: CellTurn
    restored: tuple[CellTurn, ...]


@dataclass
class History:
    """All turns that a conversation has ever had, and the last one that counts.

    A turn follows its `parent`. One that ran instead of others knows in `instead` where the conversation had come to.
    So nothing is ever lost, and taking back is one step along one of the two.
    """

    turns: list[CellTurn] = field(default_factory=list)
    head: CellTurn | None = None

    @property
    def path(self) -> list[CellTurn]:
        """The turns that count, in order."""
        path: list[CellTurn] = []
        turn = self.head
        while turn is not None:
            path.append(turn)
            turn = turn.parent
        return path[::-1]

    def add(self, turn: CellTurn, parent: CellTurn | None, instead: CellTurn | None, number: int = 0) -> None:
        """Make `turn` the last one. `number` is the one it had in a file; 0 gives it a new one."""
        turn.number = number or 1 + max((each.number for each in self.turns), default=0)
        self.turns.append(turn)
        turn.parent, turn.instead = parent, instead
        self.head = turn


class Conversation:
    """The turns that the next request will hold, and their way to the disk.

    Running an agent cell again rewinds the conversation to before that cell; what it took out is kept as a branch,
    and `undo` brings it back. Any thread may call; what reaches the log is in the order of the calls.

    Args:
        name: Of a session (`--session`); "" is the notebook's own conversation.
        log: Where it is kept; None keeps it in memory.

    Attributes:
        id: Another one after each `reset` and `resume`.
        is_resumed: Whether it goes on from a kept one.
    """

    def __init__(self, name: str = "", log: ConversationLog | None = None) -> None:
        self.name = name
        self.log = log
        self._lock = threading.RLock()
        self._start(History(), None)

    def _start(self, history: History, source: tuple[str, int] | None) -> None:
        self.id = uuid.uuid4().hex
        self.started = now_ms()
        self.source = source
        self.is_resumed = False
        self._history = history
        self._inherited = len(history.turns)
        self._is_kept = False

    @property
    def turns(self) -> list[CellTurn]:
        """The turns that count, in order."""
        return self._history.path

    @property
    def messages(self) -> list[Message]:
        return [message for turn in self.turns for message in turn.messages]

    def begin(self, turn: CellTurn) -> Rewound | None:
        """Make `turn` the last one; what it replaces, if its cell has run before, is returned."""
        with self._lock:
            history = self._history
            path = history.path
            at = next((i for i, old in enumerate(path) if turn.key is not None and old.key == turn.key), None)
            if at is None:
                history.add(turn, history.head, None)
                rewound = None
            else:
                replaced, *followed = path[at:]
                history.add(turn, replaced.parent, history.head)
                rewound = Rewound(replaced, tuple(followed))
            self._keep(self._turn_record(turn), is_start=True)
            return rewound

    def add(self, turn: CellTurn, message: Message) -> None:
        """Add a whole message to a turn that runs; what comes after its end comes too late."""
        with self._lock:
            if turn.outcome is not None:
                return
            if message.role == "assistant":
                turn.so_far = CallsSoFar()
            turn.messages.append(message)
            if self._is_mine(turn):
                self._keep(self._message_record(turn, message))

    def call_began(self, turn: CellTurn, call_id: str) -> None:
        """A call's own code is about to begin. Whatever happens then, nobody will say that it did not run."""
        with self._lock:
            if turn.outcome is None and turn.so_far is not None:
                turn.so_far.began.append(call_id)
                if self._is_mine(turn):
                    self._keep(self._call_record(turn, call_id, "began"))

    def call_ended(self, turn: CellTurn, result: ToolResultMessage, shown: Record) -> None:
        """A call has ended; `result` will be a message once all calls of its batch have. `shown`: as in `calls`."""
        with self._lock:
            if turn.outcome is None and turn.so_far is not None:
                turn.so_far.ended.append((result, shown))
                last = next((m for m in reversed(turn.messages) if m.role == "assistant"), None)
                is_last = last is None or len(turn.so_far.ended) >= len(last.tool_calls)  # the messages follow at once
                if self._is_mine(turn) and not is_last:
                    self._keep(self._end_of_call_record(turn, result, shown))

    def close_open_calls(self, turn: CellTurn, interrupted: str, not_run: str) -> None:
        """Give every call of `turn` that has no result the one it came to, else an error that says one of the two."""
        with self._lock:
            for result in mended(turn.messages, turn.so_far, interrupted, not_run)[len(turn.messages) :]:
                self.add(turn, result)

    def end(self, turn: CellTurn, outcome: str, calls: Sequence[Record] = ()) -> None:
        """The run is over; `outcome` as in `RunView`, `calls` as in `CellTurn`."""
        with self._lock:
            turn.outcome = outcome
            turn.calls = calls
            if self._is_mine(turn):
                self._keep(self._end_record(turn))

    def undo(self) -> Undone | None:
        """Take the last turn back, and bring back what it had taken out if its cell had run before. None: is empty."""
        with self._lock:
            history = self._history
            before = history.path
            if not before:
                return None
            last = before[-1]
            history.head = last.parent if last.instead is None else last.instead
            self._keep(self._head_record(), is_start=True)
            return Undone(last, tuple(turn for turn in history.path if turn not in before))

    def reset(self) -> None:
        """Begin an empty conversation. The old one stays on disk."""
        with self._lock:
            self._start(History(), None)

    def resume(self, history: History, source: tuple[str, int] | None = None) -> None:
        """Go on from `history`. `source` names the conversation in the same file, and how many of its lines count."""
        with self._lock:
            self._start(history, source)
            self.is_resumed = True

    def take_notices(self) -> list[str]:
        """What people should be told about keeping the conversation, each once."""
        return self.log.take_notices() if self.log is not None else []

    # ---- the log ---------------------------------------------------------------------------------

    def _is_mine(self, turn: CellTurn) -> bool:
        """Whether `turn` is of this conversation, and not of one that was left by `reset`."""
        return any(each is turn for each in reversed(self._history.turns))

    def _keep(self, record: Record, *, is_start: bool = False) -> None:
        """Append one record, or everything if nothing of this conversation is in the file."""
        if self.log is None:
            return
        if is_start and self.log.prepare():  # the file is a new one: nothing in it can be referred to
            self._is_kept, self.source, self._inherited = False, None, 0
        if self._is_kept:
            self.log.append(record)
        else:
            self._is_kept = True
            for each in self._records():
                self.log.append(each)

    def _records(self) -> Iterator[Record]:
        """The whole conversation, but for what its source holds."""
        start = {"type": "conversation", "version": SCHEMA_VERSION, "conversation": self.id, "time": self.started}
        source = {} if self.source is None else {"from": list(self.source)}
        yield start | {"kernel": THIS_KERNEL, "session": self.name} | source
        for turn in self._history.turns[self._inherited :]:
            yield self._turn_record(turn)
            for message in turn.messages:
                yield self._message_record(turn, message)
            if turn.outcome is not None:
                yield self._end_record(turn)
            elif turn.so_far is not None:
                yield from (self._call_record(turn, call_id, "began") for call_id in turn.so_far.began)
                yield from (self._end_of_call_record(turn, *each) for each in turn.so_far.ended)
        yield self._head_record()

    def _turn_record(self, turn: CellTurn) -> Record:
        return {
            "type": "turn",
            "conversation": self.id,
            "turn": turn.number,
            "parent": turn.parent and turn.parent.number,
            "instead": turn.instead and turn.instead.number,
            "key": turn.key,
            "prompt": turn.prompt,
            "line": turn.line,
            "executionCount": turn.execution_count,
            "time": turn.time,
            "tellsCalls": turn.so_far is not None,
        }

    def _message_record(self, turn: CellTurn, message: Message) -> Record:
        return {"type": "message", "conversation": self.id, "turn": turn.number, "message": message_record(message)}

    def _call_record(self, turn: CellTurn, call_id: str, state: str) -> Record:
        return {"type": "call", "conversation": self.id, "turn": turn.number, "id": call_id, "state": state}

    def _end_of_call_record(self, turn: CellTurn, result: ToolResultMessage, shown: Record) -> Record:
        known = {"message": message_record(result), "shown": bounded(shown)}
        return self._call_record(turn, result.tool_call_id, "ended") | known

    def _end_record(self, turn: CellTurn) -> Record:
        calls = [bounded(call) for call in turn.calls]
        return {"type": "end", "conversation": self.id, "turn": turn.number, "outcome": turn.outcome, "calls": calls}

    def _head_record(self) -> Record:
        head = self._history.head
        return {"type": "head", "conversation": self.id, "turn": head and head.number}


def mended(
    messages: Iterable[Message],
    so_far: CallsSoFar | None = None,
    interrupted: str = KERNEL_ENDED,
    not_run: str = NEVER_BEGAN,
) -> list[Message]:
    """`messages` with one result per call, right behind its reply, and without results that belong to no call.

    A call of the last reply that has none gets the one it came to, else an error result that says, as far as `so_far`
    tells, whether it was interrupted or did not run; any other, that it was interrupted. Replies that failed or were
    aborted are left alone.
    """
    whole: list[Message] = []
    calls: list[ToolCall] = []
    for message in messages:
        if message.role == "tool_result":
            call = next((call for call in calls if call.id == message.tool_call_id), None)
            if call is None:
                continue
            calls.remove(call)
        else:
            whole += _at_the_time_of(whole, [_failure(call, interrupted) for call in calls])
            is_sent = message.role == "assistant" and message.stop_reason not in ("error", "aborted")
            calls = list(message.tool_calls) if message.role == "assistant" and is_sent else []
        whole.append(message)
    known = so_far or CallsSoFar([call.id for call in calls])
    return whole + _at_the_time_of(whole, known.results(calls, interrupted, not_run))


def _at_the_time_of(before: Sequence[Message], results: Iterable[ToolResultMessage]) -> list[ToolResultMessage]:
    return [result if result.timestamp else replace(result, timestamp=before[-1].timestamp) for result in results]


def _failure(call: ToolCall, text: str) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, [TextContent(text)], is_error=True, timestamp=0)
