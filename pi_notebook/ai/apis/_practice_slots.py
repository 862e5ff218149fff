"""The parameters of a tool and the words of a prompt, and which of both are still free, for the `practice` model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import ToolSpec
from ._practice_roles import role_of
from ._practice_values import NOTHING, convert, resolved
from ._practice_words import Match, Token, tokens


@dataclass(slots=True)
class Memory:
    """What was said before in the conversation: arguments of earlier calls, newest first, and the last result."""

    arguments: list[Mapping[str, Any]] = field(default_factory=list)
    result: str | None = None


@dataclass(slots=True)
class Filled:
    """Arguments as far as the words gave them. `remembered`: taken from earlier; `missing`: required, not found.

    `alternatives` are further values of the parameter `listed` (`Paris, Oslo and Rome`), one call each.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    remembered: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    listed: str = ""
    alternatives: list[Any] = field(default_factory=list)


class Slots:
    """What the ways to fill arguments share: tokens of the prompt, parameters, and what has been put where."""

    def __init__(self, match: Match, text: str, memory: Memory) -> None:
        tool: ToolSpec = match.tool.tool
        root = tool.schema
        self.words = match.tool
        self.text = text
        self.tokens = tokens(text)
        self.memory = memory
        self.done = Filled()
        self.used: set[int] = {
            index
            for index, token in enumerate(self.tokens)
            if token.text.lower() == tool.name.lower() or (token.kind == "word" and token.key in match.tool.name)
        }
        self.properties = {name: resolved(schema, root) for name, schema in dict(root.get("properties") or {}).items()}
        self.required = [name for name in root.get("required") or () if name in self.properties]
        self.required_first = [
            *self.required,
            *(name for name in self.properties if name not in self.required),
        ]
        self.index_of: dict[str, int] = {}
        self.taken: set[int] = set()

    def open(self, *, required: bool = False) -> list[str]:
        """Parameters without a value, required ones first."""
        names = self.required if required else self.required_first
        return [name for name in names if name not in self.done.arguments]

    def role(self, name: str) -> str:
        return role_of(name, self.properties[name])

    def put(self, name: str, value: Any, *indexes: int) -> None:
        self.done.arguments[name] = value
        self.used.update(indexes)
        self.taken.update(indexes)
        if indexes:
            self.index_of[name] = indexes[0]

    def free(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and index not in self.used

    def _telling(self, index: int) -> bool:
        """Not a word that only connects others, nor one that the tool itself is called by."""
        token = self.tokens[index]
        return self.free(index) and not token.filler and token.kind not in ("mark", "operator")

    def _text(self, index: int) -> str:
        return self.tokens[index].text.lower() if 0 <= index < len(self.tokens) else ""

    def _capital(self, index: int) -> bool:
        return index > 0 and self.tokens[index].text[:1].isupper() and self._text(index - 1) not in ".!?\n"

    def _whole_name(self, index: int, value: Any) -> tuple[Any, list[int]]:
        """`New York` rather than `New`."""
        span = [index]
        while self._capital(index) and self.free(span[-1] + 1) and self._capital(span[-1] + 1):
            span.append(span[-1] + 1)
        return (self.text[self.tokens[index].start : self.tokens[span[-1]].end] if span[1:] else value), span

    def _value(self, index: int, name: str) -> Any:
        """Token `index` as a value of parameter `name`, or NOTHING."""
        if not 0 <= index < len(self.tokens):
            return NOTHING
        return convert(self.tokens[index], self.properties[name])

    def _pointed(self, name: str) -> Any:
        """What `it` and `the result` mean: the last result, or the first path in it."""
        result = (self.memory.result or "").strip()
        if not result:
            return NOTHING
        found = tokens(result)
        wanted = "number" if self.properties[name].get("type") in ("number", "integer") else "path"
        candidates = [token for token in found if token.kind == wanted]
        if wanted == "path" and not candidates and "\n" not in result and len(result) <= 200:
            candidates = [Token("quoted", result, 0, len(result))]
        if wanted == "path" and not candidates:
            candidates = [token for token in found if token.kind == "quoted"]
        values = [convert(token, self.properties[name]) for token in candidates]
        return next((value for value in values if value is not NOTHING), NOTHING)
