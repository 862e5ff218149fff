"""`{name}` in a prompt becomes content: live variables, inserted as a model can read them.

A field is a name with attributes and literal indexes, in single braces: `{sales}`, `{cfg.path}`, `{rows[0]}`,
`{table["price"]}`. Everything else stays byte for byte: other braces, code (fences and inline), `{{...}}`, `${...}`,
`\\cmd{...}`. No calls, no format specs, no private names. An inserted text is never scanned again.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ai.messages import TextContent, UserContent

_FENCE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_FIELD = re.compile(
    r"""(?<![{$])\{
        (?P<root>[^\W\d]\w*)
        (?P<steps>(?:\.[^\W\d]\w*|\[(?:-?\d+|"[^"\\\n]*"|'[^'\\\n]*')\])*)
        \}(?!\})""",
    re.VERBOSE,
)
_STEP = re.compile(r"""\.([^\W\d]\w*)|\[(-?\d+|"[^"]*"|'[^']*')\]""")
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\{[^{}]*\}|\[[^\[\]]*\])*$")
_HIDDEN_NAMES = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})


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
        to_content: Makes blocks of a value (the same way as of a tool's result).

    A field that cannot be resolved stays as it is and leaves a warning, if its root is a live variable or nearly so.
    """
    rendered = RenderedPrompt([])
    code = [match.span() for match in _FENCE.finditer(text)]
    code += [m.span() for m in _INLINE_CODE.finditer(text) if not _inside(m.start(), code)]
    at = 0
    for match in _FIELD.finditer(text):
        if _inside(match.start(), code) or _LATEX_COMMAND.search(text, 0, match.start()):
            continue
        found = _lookup(match, namespace, rendered)
        if found is None:
            continue
        _append_text(rendered.content, text[at : match.start()])
        blocks = list(to_content(found[0]))
        # A model that is shown a preview has to know the name, or it could not give it to a tool.
        is_preview = any(block.type != "text" or "\n" in block.text for block in blocks) and not isinstance(
            found[0], str
        )
        if is_preview:
            _append_text(rendered.content, f"`{match[0][1:-1]}`:\n")
        for block in blocks:
            if block.type == "text":
                _append_text(rendered.content, block.text)
            else:
                rendered.content.append(block)
        if is_preview:
            _append_text(rendered.content, "\n\n")
        rendered.inserted.append(f"{match[0][1:-1]}: {_describe(found[0])}")
        at = match.end()
    _append_text(rendered.content, text[at:])
    return rendered


def is_live(name: str, namespace: Mapping[str, Any]) -> bool:
    """Whether a prompt may name this variable: the user's own, no private names, none of IPython's."""
    return name in namespace and not name.startswith("_") and name not in _HIDDEN_NAMES


def _lookup(match: re.Match[str], namespace: Mapping[str, Any], rendered: RenderedPrompt) -> tuple[Any] | None:
    root = match["root"]
    if not is_live(root, namespace):
        live = [name for name in namespace if is_live(name, namespace)]
        near = difflib.get_close_matches(root, live, n=1, cutoff=0.75)
        if near:
            rendered.warnings.append(
                f"{match[0]} was sent as it is: there is no variable {root!r}. Did you mean {near[0]!r}?"
            )
        return None
    value = namespace[root]
    try:
        for name, index in _STEP.findall(match["steps"]):
            if name.startswith("_"):
                raise AttributeError(f"{name!r} is private")
            value = getattr(value, name) if name else value[ast.literal_eval(index)]
    except Exception as error:
        rendered.warnings.append(f"{match[0]} was sent as it is: {type(error).__name__}: {error}")
        return None
    return (value,)


def _inside(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= position < end for start, end in spans)


def _append_text(content: list[UserContent], text: str) -> None:
    if not text:
        return
    if content and content[-1].type == "text":
        content[-1] = TextContent(content[-1].text + text)
    else:
        content.append(TextContent(text))


def _describe(value: Any) -> str:
    """Type and size of an inserted value, in a few words."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind}, {' x '.join(map(str, shape))}"
    if isinstance(value, str | bytes):
        return f"{kind}, {len(value)} characters"
    if isinstance(value, list | tuple | dict | set):
        return f"{kind}, {len(value)} items"
    return kind
