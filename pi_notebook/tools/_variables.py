"""The tool `variables`."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from ..agent._cut import readable_size
from ..agent.tool import Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._paths import shown
from ._preview import Summary, is_one_of, summary
from ._thread_tool import thread_tool
from ._truncate import cut_head

LIMIT = 200
_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})

DESCRIPTION = (
    "List the notebook's variables by type, shape, size and a short preview, or look at one more closely. Objects of "
    "unknown classes are only named, nothing of them is run. Not for computing anything or for attributes (python)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "One variable to look at more closely; all are listed if left out."}
    },
    "additionalProperties": False,
}


def variables_tool(
    namespace: Mapping[str, Any], is_hidden: Callable[[str, Any], bool] = lambda name, value: False
) -> Tool:
    """A tool that lists what is in `namespace`. Its `details` are a dict of name to `Summary`.

    Args:
        is_hidden: `(name, value) -> bool`: what is not the user's own and should not be listed.
    """

    def look(params: dict[str, Any], signal: AbortSignal) -> ToolResult:
        name = params.get("name")
        return _one(namespace, name) if name else _all(namespace, is_hidden)

    return thread_tool("variables", DESCRIPTION, PARAMETERS, look)


def _one(namespace: Mapping[str, Any], name: str) -> ToolResult:
    if not name.isidentifier():
        raise ToolError(f"{shown(name)} is not the name of a variable; use python for expressions and attributes.")
    if name not in namespace:
        raise ToolError(f"There is no variable {name}. List them all by leaving the name out.")
    found = summary(namespace[name], closer=True)
    text = _line(name, found)
    if found.detail and found.detail != found.preview:
        text += f"\n{found.detail}"
    return ToolResult([TextContent(_cut(text))], {name: found})


def _all(namespace: Mapping[str, Any], is_hidden: Callable[[str, Any], bool]) -> ToolResult:
    own = {
        name: value
        for name, value in dict(namespace).items()
        if type(name) is str and not name.startswith("_") and name not in _IPYTHON and not is_hidden(name, value)
    }
    values: list[str] = []
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Modules": []}
    for name in sorted(own, key=lambda name: (name.casefold(), name)):
        group = _group(own[name])
        (groups[group] if group else values).append(name)
    found = {name: summary(own[name]) for name in values[:LIMIT]}
    lines = [_line(name, about) for name, about in found.items()]
    if len(values) > LIMIT:
        lines.append(f"[{len(values) - LIMIT:,} more variables are left out; ask for one by name.]")
    lines += [f"{title}: {', '.join(names)}" for title, names in groups.items() if names]
    return ToolResult([TextContent(_cut("\n".join(lines) or "(no variables)"))], found)


def _cut(text: str) -> str:
    cut = cut_head(text)
    return f"{cut.text}\n[{cut.left_out} left out]" if cut.by else cut.text


def _group(value: Any) -> str:
    kind = type(value)
    if is_one_of(kind, (types.FunctionType, types.BuiltinFunctionType)):
        return "Functions"
    if kind is types.ModuleType:
        return "Modules"
    return "Classes" if issubclass(kind, type) else ""


def _line(name: str, about: Summary) -> str:
    facts = [about.type, about.shape, readable_size(about.bytes) if about.bytes is not None else ""]
    text = f"{name}: {', '.join(fact for fact in facts if fact)}"
    return f"{text}; {about.preview}" if about.preview and about.preview != f"<{about.type}>" else text
