"""`{name}` in a prompt becomes content: live variables, inserted as a model can read them.

A field is a name with attributes and literal indexes, in single braces: `{sales}`, `{cfg.path}`, `{rows[0]}`,
`{table["price"]}`, `{frame.loc[0, "price"]}`. Everything else stays byte for byte: other braces, code (fences and
inline), `{{...}}`, `${...}`, `\\cmd{...}`, `$x_{...}$`. No calls, no format specs, no private names, none of IPython's.
An inserted text is never scanned again.

A text, a number or anything else that fits into a line stands where its field stood. A preview of several lines (a
table) and an image get the field's name before them, so that the model knows what it sees and can name it to a tool.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ..ai.messages import TextContent, UserContent
from ._literal_spans import is_inside, literal_spans

_NAME = r"[^\W\d]\w*"
_LITERAL = r"""(?:-?\d{1,18}(?:\.\d{1,18})?|True|False|None|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_STEP = re.compile(rf"\.({_NAME})|\[({_LITERAL}(?:,[ ]?{_LITERAL})*)\]")
_FIELD = re.compile(rf"\{{(?P<root>{_NAME})(?P<steps>(?:{_STEP.pattern})*)\}}")
_NEARLY = re.compile(
    rf"\{{(?P<root>{_NAME})(?:{_STEP.pattern})*+"
    r"(?P<more>\(|![rsa][}:]|:[^\s{}]{1,20}\}|\[(?P<index>[^\n{}]{1,80}?)\](?=[^\n{}]{0,80}\}))"
)
_HIDDEN_NAMES = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
_MAX_WARNINGS = 5
_MAX_NEAR_LOOKS = 100
"""Different unknown names of one prompt that are compared with the notebook's variables."""


@dataclass(slots=True)
class RenderedPrompt:
    """`content`: the blocks to send. `inserted`, `warnings`: one line each, for the card."""

    content: list[UserContent]
    inserted: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if block.type == "text")


def render_prompt(
    text: str, namespace: Mapping[str, Any], to_content: Callable[[Any], Sequence[UserContent]]
) -> RenderedPrompt:
    """Insert the live variables of `namespace` that `text` names.

    Args:
        text: What a person wrote. Never changed outside its fields.
        to_content: Makes blocks of a value and limits their size.

    A field that cannot be resolved stays as it is and leaves a warning, if its root is a live variable or nearly so.
    Nothing that a value's own code raises gets out, but for KeyboardInterrupt.
    """
    return _Renderer(text, namespace, to_content).render()


def render_system(
    text: str, namespace: Mapping[str, Any], to_content: Callable[[Any], Sequence[UserContent]]
) -> tuple[str, RenderedPrompt]:
    """A system prompt by the same rule, and what is to be said of it. Images cannot stand in one and are left out."""
    rendered = render_prompt(text, namespace, to_content)
    rendered.inserted = [f"{line} (in --system)" for line in rendered.inserted]
    if any(block.type == "image" for block in rendered.content):
        rendered.warnings.append("A system prompt is text: images were left out of --system.")
    return rendered.text, rendered


def is_live(name: str, namespace: Mapping[str, Any]) -> bool:
    """Whether a prompt may name this variable: the user's own, no private names, none of IPython's."""
    return name in namespace and not name.startswith("_") and name not in _HIDDEN_NAMES


class _Unresolved(Exception):
    """Why a field stays as it is; empty if there is nothing to say about it."""


class _Renderer:
    def __init__(
        self, text: str, namespace: Mapping[str, Any], to_content: Callable[[Any], Sequence[UserContent]]
    ) -> None:
        self.text = text
        self.namespace = namespace
        self.to_content = to_content
        self.rendered = RenderedPrompt([])
        self._near: dict[str, str | None] = {}
        self._pieces: list[str] = []

    def render(self) -> RenderedPrompt:
        literal = literal_spans(self.text)
        at, brace = 0, self.text.find("{")
        while brace >= 0:
            end = brace + 1
            if not is_inside(brace, literal):
                if (match := _FIELD.match(self.text, brace)) is None:
                    self._warn_of_more(brace)
                elif self._insert(match, at):
                    at = end = match.end()
            brace = self.text.find("{", end)
        self._pieces.append(self.text[at:])
        self._end_text()
        self._limit_warnings()
        return self.rendered

    def _insert(self, match: re.Match[str], at: int) -> bool:
        """Append the text from `at` and the field's value; False if there is none."""
        try:
            value = self._look_up(match)
            blocks = list(self.to_content(value))
            named = not isinstance(value, str) and any(b.type != "text" or "\n" in b.text.strip() for b in blocks)
        except _Unresolved as reason:
            if str(reason):
                self._warn(match[0], str(reason))
            return False
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the value's own code
            self._warn(match[0], _one_line(error))
            return False
        name = match[0][1:-1]
        self._pieces.append(self.text[at : match.start()])
        if named:
            self._pieces.append(f"`{name}`:\n")
        for block in blocks:
            if block.type == "text":
                self._pieces.append(block.text)
            else:
                self._end_text()
                self.rendered.content.append(block)
        if named:
            self._pieces.append("\n\n")
        line = f"{name}: {_describe(value, blocks)}"
        if line not in self.rendered.inserted:
            self.rendered.inserted.append(line)
        return True

    def _look_up(self, match: re.Match[str]) -> Any:
        root = match["root"]
        if not is_live(root, self.namespace):
            near = self._nearest(root)
            raise _Unresolved(f"there is no variable {root!r}. Did you mean {near!r}?" if near else "")
        value = self.namespace[root]
        for name, index in _STEP.findall(match["steps"]):
            if name.startswith("_"):
                raise _Unresolved(f"{name!r} is private.")
            value = getattr(value, name) if name else value[_literal(index)]
        if isinstance(value, ModuleType):
            raise _Unresolved("it is a module.")
        return value

    def _nearest(self, root: str) -> str | None:
        if len(self._near) >= _MAX_NEAR_LOOKS:
            return self._near.get(root)
        if root not in self._near:
            live = [name for name in self.namespace if isinstance(name, str) and is_live(name, self.namespace)]
            self._near[root] = next(iter(difflib.get_close_matches(root, live, n=1, cutoff=0.75)), None)
        return self._near[root]

    def _warn_of_more(self, brace: int) -> None:
        """A live variable with something that is not inserted behind it."""
        match = _NEARLY.match(self.text, brace)
        if match is not None and is_live(match["root"], self.namespace):
            end = self.text.find("}", brace) + 1
            self._warn(self.text[brace : end or len(self.text)], f"{_refusal(match)}; put it into a variable first.")

    def _warn(self, shown: str, reason: str) -> None:
        warning = f"{_short(shown)} was sent as it is: {reason}"
        if warning not in self.rendered.warnings:
            self.rendered.warnings.append(warning)

    def _limit_warnings(self) -> None:
        more = len(self.rendered.warnings) - _MAX_WARNINGS
        if more > 0:
            self.rendered.warnings[_MAX_WARNINGS:] = [f"{more} more fields were sent as they are."]

    def _end_text(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text:
            self.rendered.content.append(TextContent(text))


def _refusal(match: re.Match[str]) -> str:
    if (index := match["index"]) is None:
        return f"prompts take no {'calls' if match['more'] == '(' else 'conversions and format specs'}"
    return "prompts take no slices" if ":" in index else "an index is a number or a text in quotes"


def _literal(index: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        try:
            return ast.literal_eval(index)
        except SyntaxError:
            raise _Unresolved(f"{index} is no index.") from None


def _describe(value: Any, blocks: Sequence[UserContent]) -> str:
    """Type and size of an inserted value, in a few words; what its own code raises is left out."""
    kind = type(value).__name__
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):
            kind += f", {' x '.join(map(str, shape))}" if shape else ""
        elif isinstance(value, str):
            kind += f", {len(value):,} characters"
        elif isinstance(value, bytes | bytearray):
            kind += f", {len(value):,} bytes"
        elif isinstance(value, list | tuple | dict | set | frozenset):
            kind += f", {len(value):,} items"
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass
    is_cut = isinstance(value, str) and sum(len(b.text) for b in blocks if b.type == "text") < len(value)
    return f"{kind}, cut" if is_cut else kind


def _one_line(error: BaseException) -> str:
    try:
        said = " ".join(str(error).split())
    except Exception:
        said = ""
    return _short(f"{type(error).__name__}: {said}" if said else type(error).__name__, 200)


def _short(text: str, length: int = 80) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 3]}..."
