"""Words of a prompt and of tools, for the `practice` model: tokens, stems, steps, and which tool a step names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..model import ToolSpec

_TOKEN = re.compile(
    r"""
    (?P<fence>```[^\n`]*\n(?P<fenced>.*?)\n?```)
  | (?P<quoted>`(?P<tick>[^`]+)`|"(?P<double>[^"]*)"|“(?P<curly>[^“”]*)”|(?<!\w)'(?P<single>[^']*)'(?!\w))
  | (?P<json>\{[^{}]*\}|\[[^\[\]]*\])
  | (?P<link>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|s3://)[^\s<>"']*[^\s<>"'.,;:!?)])
  | (?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?)
  | (?P<number>(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w/\\]|\.\w))
  | (?P<path>(?<![\w*?~@+.-])[\w*?~@+.-]*(?:[/\\][\w*?~@+.-]*)*[/\\](?:[\w*?~@+.-]*[\w*~])?
      |(?<![\w*?.-])[\w*?-]+(?:\.[\w*-]+)*\.[A-Za-z*]\w*|\*+)
  | (?P<operator><=|>=|==|!=|<|>|=)
  | (?P<mark>[,;:.!?\n()])
  | (?P<word>\w+(?:['’-]\w+)*)
    """,
    re.VERBOSE | re.DOTALL,
)

_STOP = """
a about after again all also am an and any are as at be been before both but by calculate called can
compute could determine did display do does each entire every find for from get give go had has have he
hello her here hi him his how i if in into is it it's its just kindly know let let's like make many may
me much my name named need no not now of off ok okay on one ones onto or our out over parallel per
please report result results same shall she should show simultaneously so some tell than thank thanks
that the their them then there these they this those to today too under up us use using value values via
want was way we were what what's when where which who whole whose why will with within without would yes
you your
"""
STOP_WORDS = frozenset(_STOP.split())
PRONOUNS = frozenset({"it", "them", "that", "this", "those", "these", "result", "results"})

_SYNONYMS = {
    "average": "mean", "avg": "mean", "delete": "drop", "remove": "drop", "erase": "drop", "draw": "plot",
    "chart": "plot", "graph": "plot", "visualise": "plot", "visualize": "plot", "highest": "max", "largest": "max",
    "biggest": "max", "maximum": "max", "lowest": "min", "smallest": "min", "minimum": "min", "open": "read",
    "list": "ls", "directory": "folder", "dir": "folder", "search": "grep", "total": "sum", "plus": "add",
    "times": "multiply", "minus": "subtract", "shell": "bash", "terminal": "bash", "hist": "histogram",
    "correlation": "correlate", "df": "table", "dataframe": "table", "frame": "table", "dataset": "table",
    "forecast": "weather", "mail": "email", "load": "read", "std": "deviation", "count": "count", "execute": "run",
}  # fmt: skip


def stem(word: str) -> str:
    """One form for the forms of a word and its synonyms: `dropping`, `removed` and `drop` are equal."""
    key = word.lower().replace("’", "'").removesuffix("'s")
    key = _SYNONYMS.get(key, key)
    bare = key
    for suffix in ("ing", "ed", "es", "s"):
        if key.endswith(suffix) and len(key) - len(suffix) >= 3 and not key.endswith(("ss", "us", "is")):
            bare = key.removesuffix(suffix)
            if suffix in ("ing", "ed") and len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "lsz":
                bare = bare[:-1]
            break
    bare = _SYNONYMS.get(bare, _SYNONYMS.get(bare + "e", bare))
    return bare[:-1] if bare.endswith("e") and len(bare) > 3 else bare


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a prompt. `kind`: quoted, fence, json, link, date, number, path, operator, mark or word."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def key(self) -> str:
        return stem(self.text)

    @property
    def filler(self) -> bool:
        return self.kind == "word" and self.text.lower().replace("’", "'") in STOP_WORDS

    @property
    def content(self) -> bool:
        """A word that means something."""
        return self.kind == "word" and not self.filler


def tokens(text: str) -> list[Token]:
    """Cut a text into tokens; quotes and fences are left off their contents."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "word"
        inner = [match[name] for name in _INNER.get(kind, ()) if match[name] is not None]
        found.append(Token(kind, inner[0] if inner else match[0], *match.span()))
    return found


_INNER = {"fence": ("fenced",), "quoted": ("tick", "double", "curly", "single")}


def split_name(name: str) -> list[str]:
    """`columnMean_of-table` -> column, Mean, of, table."""
    return [part for part in re.split(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])", name) if part]


def stems(text: str) -> set[str]:
    return {token.key for token in tokens(text) if token.content}


@dataclass(frozen=True, slots=True)
class ToolWords:
    """What a tool is called and said to be, as stems."""

    tool: ToolSpec
    verb: str
    name: frozenset[str]
    description: frozenset[str]
    parameters: frozenset[str]

    @classmethod
    def of(cls, tool: ToolSpec) -> ToolWords:
        parameters: set[str] = set()
        for key, schema in dict(tool.schema.get("properties") or {}).items():
            parameters.update(map(stem, split_name(key)))
            if isinstance(schema, dict):
                parameters.update(stem(str(value)) for value in schema.get("enum") or ())
        name = [stem(part) for part in split_name(tool.name)]
        return cls(
            tool, name[0] if name else "", frozenset(name), frozenset(stems(tool.description)), frozenset(parameters)
        )


@dataclass(slots=True)
class Match:
    """A tool, how well the words fit it, and which of them did."""

    tool: ToolWords
    score: float
    words: list[str] = field(default_factory=list)
    by_name: bool = False


def best_match(found: Sequence[Token], tools: Sequence[ToolWords]) -> Match | None:
    """The tool that the words fit best; None if no word of a name or a description is among them.

    A word of the name counts more than one of the description, its first word most; a word that several tools
    share counts less.
    """
    matches = [match for tool in tools if (match := _match(found, tool, tools)) is not None]
    return max(matches, key=lambda match: match.score, default=None)


def _match(found: Sequence[Token], tool: ToolWords, tools: Sequence[ToolWords]) -> Match | None:
    match = Match(tool, 0.0)
    seen: set[str] = set()
    for token in found:
        spelled = token.kind in ("word", "quoted") and token.text.lower() == tool.tool.name.lower()
        if spelled:
            match.score += 100
        elif token.key in seen or not (token.content or (token.filler and token.key in tool.name)):
            continue
        elif token.key in tool.name:
            weight = 2.5 if token.key == tool.verb else 1.25
            match.score += weight / sum(token.key in other.name for other in tools)
        elif token.key in tool.description:
            match.score += 1 / sum(token.key in other.description | other.name for other in tools)
            seen.add(token.key)
            match.words.append(token.text)
            continue
        else:
            match.score += 0.25 * (token.key in tool.parameters)
            continue
        seen.add(token.key)
        match.by_name = True
        match.words.append(token.text)
    harmless = tool.verb not in _NEEDS_ITS_VERB or match.score >= 100 or tool.verb in seen
    return match if match.words and harmless else None


# Tools whose first word says that something is changed are not called for their other words alone.
_CHANGES = (
    "drop", "wipe", "clear", "write", "send", "kill", "overwrite", "truncate", "update", "insert", "move", "rename",
    "upload", "deploy", "pay", "buy", "order", "edit", "replace", "reset", "stop",
)  # fmt: skip
_NEEDS_ITS_VERB = frozenset(map(stem, _CHANGES))


@dataclass(slots=True)
class Step:
    """A part of a prompt that one tool shall serve; `match` None: no tool fits."""

    text: str
    match: Match | None


_STRONG = re.compile(
    r"(?:[.!?;](?=\s|$)|\n)+|[,.;]?\s+(?:and\s+)?(?:then|afterwards|after\s+that|finally|next)\b[,:]?|^\s*(?:then|first)\b[,:]?",
    re.IGNORECASE,
)
_WEAK = re.compile(r",\s*(?:and|but)?\b|\s+and\s+(?:also\s+)?|\s+but\s+", re.IGNORECASE)


_CLOSED = frozenset({"quoted", "fence", "json", "path", "number", "link"})


def _cut(text: str, separator: re.Pattern[str]) -> list[tuple[str, str]]:
    """`(separator before it, piece)` for each piece; never cuts inside quotes or code."""
    closed = [token for token in tokens(text) if token.kind in _CLOSED]
    starts = [token.start for token in closed]
    pieces, start, before = [], 0, ""
    for match in separator.finditer(text):
        inside = bisect_left(starts, match.end()) - 1  # the last one that begins before the separator ends
        if inside >= 0 and closed[inside].end > match.start():
            continue
        pieces.append((before, text[start : match.start()]))
        start, before = match.end(), match[0]
    pieces.append((before, text[start:]))
    return [(before, piece.strip()) for before, piece in pieces if piece.strip()]


def steps(prompt: str, tools: Sequence[ToolWords]) -> list[Step]:
    """Cut a prompt into steps at `then`, `and`, commas and sentence ends, where a tool begins to be meant.

    A part that means no tool belongs to the step before it (or to the first one), except after `then`: there it
    is a step that nothing serves.
    """
    found: list[Step] = []
    lead = ""
    for separator, sentence in _cut(prompt, _STRONG):
        ordered = bool(re.search(r"[a-z]", separator, re.IGNORECASE))
        for number, (weak, piece) in enumerate(_cut(sentence, _WEAK)):
            match = best_match(tokens(piece), tools)
            begins = match is not None and (number == 0 or _starts_with(piece, match.tool))
            if begins and not (found and number == 0 and not ordered and not _asks(piece, match)):
                found.append(Step(f"{lead} {piece}".strip(), match))
                lead = ""
            elif number == 0 and ordered and found:
                bare = not any(token.content for token in tokens(piece))
                found.append(Step(piece, found[-1].match if bare else None))
            elif found:
                found[-1].text += f"{weak or '. '}{piece}"
            else:
                lead = f"{lead}{weak or ' '}{piece}"
    if not found and prompt.strip():
        return [Step(prompt.strip(), None)]
    for step in found:
        if step.match is not None:
            step.match = best_match(tokens(step.text), [step.match.tool]) or step.match
    return found


def _starts_with(piece: str, tool: ToolWords) -> bool:
    """Whether the first word that means something belongs to the tool: `drop the rows`, but not `the price`."""
    found = tokens(piece)
    place = next((i for i, token in enumerate(found) if token.kind != "mark" and not token.filler), None)
    if place is None or (place + 1 < len(found) and found[place + 1].text in ("=", ":")):  # `column=price`
        return False
    first = found[place]
    spelled = first.kind == "word" and first.text.lower() == tool.tool.name.lower()
    return first.key in tool.name or spelled


def _asks(piece: str, match: Match | None) -> bool:
    """Whether a further sentence is a wish of its own rather than a remark on the one before."""
    return match is not None and (match.by_name or len(match.words) > 1)
