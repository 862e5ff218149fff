"""Which cell said what: the turns of one notebook's conversation, in the order in which they ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ai.messages import Message

CellKey = tuple[str, int]
"""Cell id and ordinal of the agent's call within one execution of that cell."""


@dataclass(eq=False)
class CellTurn:
    """What one run of one agent cell added."""

    key: CellKey | None
    prompt: str
    messages: list[Message] = field(default_factory=list)
    execution_count: int | None = None


@dataclass(frozen=True)
class Rewound:
    """What running a cell again took out: the turn it replaces and those that had followed it."""

    replaced: CellTurn
    followed: tuple[CellTurn, ...]


class Conversation:
    """The turns that the next request will hold.

    Running an agent cell again rewinds the conversation to before that cell; what it took out is kept as a branch,
    and `undo` brings it back.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.turns: list[CellTurn] = []
        self._branches: list[list[CellTurn]] = []

    @property
    def messages(self) -> list[Message]:
        return [message for turn in self.turns for message in turn.messages]

    def begin(self, turn: CellTurn) -> Rewound | None:
        """Make `turn` the last one; what it replaces, if its cell has run before, is returned."""
        rewound = None
        at = next((i for i, old in enumerate(self.turns) if turn.key is not None and old.key == turn.key), None)
        if at is not None:
            replaced, *followed = self.turns[at:]
            self._branches.append(list(self.turns))
            del self.turns[at:]
            rewound = Rewound(replaced, tuple(followed))
        self.turns.append(turn)
        return rewound

    def undo(self) -> CellTurn | None:
        """Take the last turn back, or bring back what a re-run took out. Returns the turn that was taken back."""
        if not self.turns:
            return None
        last = self.turns.pop()
        if self._branches and self._branches[-1][: len(self.turns)] == self.turns:
            self.turns = self._branches.pop()
        return last

    def reset(self) -> None:
        self.turns.clear()
        self._branches.clear()

    def extend(self, turns: Iterable[CellTurn]) -> None:
        self.turns.extend(turns)
