"""The user's rules in code: which tool calls run unasked, are asked for, or are blocked."""

from __future__ import annotations

import fnmatch
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ..agent.hooks import Decision, Question
from ..errors import PiNotebookError

Fit: TypeAlias = Literal["yes", "no", "unreadable"]

_PATTERN = re.compile(r"([A-Za-z0-9_*?-]+)(?:\((.*)\))?", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Through one of these a shell goes on to another command: an allowed beginning says nothing about it.
_SHELL_CONTROL = ";&|`\n\r<>(){}$\0"
_NO_CONTROL = rf"[^{re.escape(_SHELL_CONTROL)}]"
_WILDCARD = re.compile(r"(?P<any>\*+)|\?|\[(?P<negated>!?+)(?P<set>\][^\]]*+|[^\]]++)\]")
_SEPARATORS = re.compile(r"[;&|`\n\r(){}]+")
_STEP_UP = re.compile(r"""(?<![^/\\\s='"])\.\.(?![^/\\\s'"])""")
NOBODY_REASON = (
    "Blocked: this tool needs a person's approval, and nobody could be asked (the notebook runs without a person). "
    "Go on without it, or say what you would have done."
)


class Verdict(NamedTuple):
    """`reason`: for the model, of a block. `rule`: the pattern, for people."""

    kind: Literal["allow", "ask", "block"]
    rule: str
    reason: str = ""

    @property
    def by(self) -> str:
        return f"rule {self.rule!r}"


@dataclass(frozen=True)
class Pattern:
    """`tool`, `tool(glob)` or `tool(name=glob)`: calls of a tool, by its name and one of its arguments.

    The glob (`*`, `?`, `[abc]`, `[!abc]`) is matched against the whole argument: the named one, else the first that
    the tool's schema requires (or lists). A number or truth value is matched as JSON writes it, and so is a list or an
    object. An argument that is not there has its schema's default.
    """

    source: str
    tool: str
    argument: str | None
    glob: str | None
    strict: re.Pattern[str]

    @classmethod
    def parse(cls, source: str) -> Pattern:
        """Raises `PiNotebookError`, naming the pattern, for what is none."""
        match = _PATTERN.fullmatch(source.strip()) if isinstance(source, str) else None
        if match is None:
            raise PiNotebookError(
                f"Rule {source!r} is no pattern: write a tool's name, 'bash(git status*)' or 'write(path=out/*)'."
            )
        tool, inner = match.groups()
        if inner == "":
            raise PiNotebookError(f"Rule {source!r} has nothing in its parentheses: write {tool!r} for every call.")
        named = _NAMED.fullmatch(inner) if inner is not None else None
        argument, glob = named.groups() if named is not None else (None, inner)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of `--` in a set, which means the same in both
                strict = re.compile(_strict_regex(glob or ""), re.DOTALL)
        except re.error as error:
            raise PiNotebookError(f"Rule {source!r} is no pattern: {error}.") from None
        return cls(source, tool, argument, glob, strict)

    def allows(self, question: Question) -> Fit:
        """Whether this is about the call. A wildcard reaches over no shell control character and no `..` of a path."""
        return self._fit(question, self._is_harmless)

    def catches(self, question: Question) -> Fit:
        """Whether this is about the call, or about one of the commands that its argument chains."""
        return self._fit(question, self._is_in)

    def _fit(self, question: Question, matches: Any) -> Fit:
        if not fnmatch.fnmatchcase(question.tool.name, self.tool):
            return "no"
        if self.glob is None:
            return "yes"
        known, value = _argument(question, self.argument)
        if not known:
            return "unreadable"
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
        if matches(text):
            return "yes"
        return "unreadable" if isinstance(value, list | dict) else "no"

    def _is_harmless(self, text: str) -> bool:
        assert self.glob is not None
        if len(_STEP_UP.findall(text)) > len(_STEP_UP.findall(self.glob)):
            return False
        return self.strict.fullmatch(text) is not None

    def _is_in(self, text: str) -> bool:
        glob = self.glob or ""
        pieces = [text, *(_SEPARATORS.split(text) if _SEPARATORS.search(text) else ())]
        return any(fnmatch.fnmatchcase(shape, glob) for piece in pieces for shape in (piece, " ".join(piece.split())))


def _strict_regex(glob: str) -> str:
    """The regular expression of a glob whose wildcards leave out shell control characters."""
    between_stars = [""]
    at = 0
    for match in _WILDCARD.finditer(glob):
        between_stars[-1] += re.escape(glob[at : match.start()])
        at = match.end()
        if match["any"]:
            between_stars.append("")
        elif match["set"]:
            members = "-".join(map(re.escape, match["set"].split("-")))
            between_stars[-1] += f"(?={_NO_CONTROL})[{'^' if match['negated'] else ''}{members}]"
        else:
            between_stars[-1] += _NO_CONTROL
    between_stars[-1] += re.escape(glob[at:])
    first, *middle = between_stars
    if not middle:
        return first
    # Atomic, as the first fit of each part is as good as any later one: no text can make the search long
    return first + "".join(f"(?>{_NO_CONTROL}*?{part})" for part in middle[:-1]) + f"{_NO_CONTROL}*{middle[-1]}"


def _argument(question: Question, name: str | None) -> tuple[bool, Any]:
    """The argument that a pattern is about, and whether there is one."""
    properties = question.tool.schema.get("properties", {})
    if name is None:
        names = [*question.tool.schema.get("required", ()), *properties]
        name = next((n for n in names if n in question.arguments), None)
        name = name if name is not None or not names else names[0]
    if name in question.arguments:
        return True, question.arguments[name]
    schema = properties.get(name) if name is not None else None
    return (True, schema["default"]) if isinstance(schema, dict) and "default" in schema else (False, None)


class Rules:
    """What may run unasked, what must not run, and what is asked for even if the tool does not ask.

        Rules(allow=["read", "bash(git status*)"], block={"bash(rm *)": "not here"}, ask=["write(path=/*)"])

    `block` wins over `ask`, `ask` over `allow`; a call that no rule fits is decided by its tool. A call whose argument
    a rule cannot read (it is missing, or a list or object that the pattern does not fit) is asked for.

    In `allow`, a wildcard does not reach over the characters that chain shell commands (`; & | $ ( ) < >` and line
    ends) nor over `..` in a path, so that `bash(git status*)` does not allow `git status; rm -rf .`. `block` and `ask`
    also look at each of the commands that are chained: `bash(rm *)` blocks `cd /; rm -rf .`. They are no wall: a shell
    has other ways to say the same.

    Args:
        allow, ask: Patterns (see `Pattern`).
        block: Patterns, or a mapping from patterns to the reason that the model is given.

    Rules are also an agent's `approve` seam where no person is there: `Agent(approve=Rules(...))`.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        block: Mapping[str, str] | Iterable[str] = (),
        ask: Iterable[str] = (),
    ) -> None:
        """Raises `PiNotebookError`, naming the pattern, for what is no pattern."""
        self.allow = _patterns("allow", allow)
        self.ask = _patterns("ask", ask)
        patterns = _patterns("block", block)
        self.block: dict[Pattern, str] = dict.fromkeys(patterns, "")
        if isinstance(block, Mapping):
            for pattern, reason in zip(patterns, block.values(), strict=True):
                if not isinstance(reason, str):
                    raise PiNotebookError(f"Rule {pattern.source!r}: the reason to block is a text, not {reason!r}.")
                self.block[pattern] = reason

    def beside(self, others: Rules | None) -> Rules:
        """These rules and `others` as one."""
        if others is None:
            return self
        both = Rules()
        both.allow, both.ask = self.allow + others.allow, self.ask + others.ask
        both.block = self.block | others.block
        return both

    def judge(self, question: Question) -> Verdict | None:
        """What the rules say about the call, and why; None if none fits."""
        unreadable: list[Pattern] = []
        for pattern, reason in self.block.items():
            fit = pattern.catches(question)
            if fit == "yes":
                return Verdict("block", pattern.source, reason or f"Blocked by the user's rule {pattern.source!r}.")
            if fit == "unreadable":
                unreadable.append(pattern)
        for pattern in self.ask:
            if pattern.catches(question) != "no":
                return Verdict("ask", pattern.source)
        if unreadable:
            return Verdict("ask", unreadable[0].source)
        for pattern in self.allow:
            fit = pattern.allows(question)
            if fit == "yes":
                return Verdict("allow", pattern.source)
            if fit == "unreadable":
                unreadable.append(pattern)
        return Verdict("ask", unreadable[0].source) if unreadable else None

    def __call__(self, question: Question) -> Decision:
        """The answer where nobody can be asked: what would be asked for is blocked."""
        verdict = self.judge(question)
        if verdict is not None and verdict.kind == "block":
            return Decision("block", verdict.reason, by=verdict.by)
        if verdict is not None and verdict.kind == "allow":
            return Decision("approve", by=verdict.by)
        if question.required or verdict is not None:
            return Decision("block", NOBODY_REASON, by="nobody there")
        return Decision("approve", by="")

    def __repr__(self) -> str:
        block = {pattern.source: reason for pattern, reason in self.block.items()}
        return f"Rules(allow={[p.source for p in self.allow]}, block={block}, ask={[p.source for p in self.ask]})"


def _patterns(name: str, given: Iterable[str]) -> list[Pattern]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PiNotebookError(f"Rules({name}=...) takes a list of patterns, not {given!r}.")
    return [Pattern.parse(source) for source in given]
