"""The tool `find`."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from ..agent.tool import Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._globs import compile_glob
from ._ls import ListDetails
from ._paths import Workspace
from ._thread_tool import thread_tool
from ._truncate import cut_head
from ._walk import Walk

LIMIT = 1_000

DESCRIPTION = (
    "Find files and folders by a glob of their names; what .gitignore excludes is left out. Paths are relative to the "
    "root folder, folders end in '/'. Not for searching in files (grep) or for listing one folder (ls)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {
            "type": "string",
            "description": "Glob: '*.csv' for names at any depth, 'src/**/*.py' for paths from the folder searched; "
            "** spans folders, {a,b} are alternatives.",
        },
        "path": {"type": "string", "description": "Folder to search; the root folder if left out."},
        "limit": {"type": "integer", "minimum": 1, "description": f"Results at most; {LIMIT:,} if left out."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def find_tool(workspace: Workspace) -> Tool:
    """A tool that finds files of `workspace` by name."""

    return thread_tool("find", DESCRIPTION, PARAMETERS, partial(_find, workspace))


def _find(workspace: Workspace, params: dict[str, Any], signal: AbortSignal) -> ToolResult:
    pattern, given, limit = params["pattern"], params.get("path") or ".", params.get("limit") or LIMIT
    start = workspace.find(given)
    if not os.path.lexists(start):
        raise workspace.missing(start, given)
    if not start.is_dir():
        raise ToolError(f"{workspace.shown(start)} is a file; give the folder to search.")
    matches = compile_glob(pattern)
    walk = Walk(workspace, start, signal.raise_if_aborted)
    results: list[str] = []
    more = False
    for found in walk:
        if matches(found.path, found.is_folder):
            if len(results) == limit:
                more = True
                break
            results.append(workspace.shown(start / found.path) + ("/" if found.is_folder else ""))
    cut = cut_head("\n".join(results), max_lines=limit)
    notes = []
    if more:
        notes.append(f"Stopped at {limit:,} results; there are more: use a narrower pattern or raise limit.")
    elif cut.by:
        notes.append(f"{cut.left_out} left out; use a narrower pattern.")
    if walk.unreadable:
        notes.append(f"Not looked into: {', '.join(walk.unreadable[:5])}{', …' if len(walk.unreadable) > 5 else ''}.")
    text = cut.text or f"Nothing matches {pattern} in {workspace.named(start)}."
    if notes:
        text += "\n\n[" + " ".join(notes) + "]"
    return ToolResult([TextContent(text)], ListDetails(workspace.shown(start), cut.lines, more or bool(cut.by)))
