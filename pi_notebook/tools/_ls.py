"""The tool `ls`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..agent.tool import Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._files import HAS_AT, held
from ._paths import Workspace, reason, shown
from ._thread_tool import thread_tool
from ._truncate import cut_head

LIMIT = 500

DESCRIPTION = (
    "List one folder, sorted, dotfiles too; folders end in '/', links show where they lead. Not for looking through a "
    "tree (find) or into files (read, grep)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Folder to list; the root folder if left out."},
        "limit": {"type": "integer", "minimum": 1, "description": f"Entries at most; {LIMIT} if left out."},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ListDetails:
    """`details` of `ls` and `find`: how many entries are in the text, and whether there are more."""

    path: str
    entries: int
    more: bool


def ls_tool(workspace: Workspace) -> Tool:
    """A tool that lists folders of `workspace`."""

    return thread_tool("ls", DESCRIPTION, PARAMETERS, partial(_ls, workspace))


def _ls(workspace: Workspace, params: dict[str, Any], signal: AbortSignal) -> ToolResult:
    given, limit = params.get("path") or ".", params.get("limit") or LIMIT
    path = workspace.find(given)
    try:
        names = _entries(workspace, path)
    except FileNotFoundError as error:
        raise workspace.missing(path, given) from error
    except NotADirectoryError as error:
        raise ToolError(f"{workspace.shown(path)} is not a folder; look into it with read.") from error
    except OSError as error:
        raise ToolError(f"{workspace.shown(path)} cannot be listed: {reason(error)}.") from error
    names.sort(key=lambda entry: (entry[0].casefold(), entry[0]))
    cut = cut_head("\n".join(marked for _, marked in names[:limit]), max_lines=limit)
    details = ListDetails(workspace.shown(path), cut.lines, cut.lines < len(names))
    if not names:
        return ToolResult([TextContent("(empty folder)")], details)
    text = cut.text
    if details.more:
        text += f"\n\n[{len(names) - cut.lines:,} of {len(names):,} entries are left out; raise limit or use find.]"
    return ToolResult([TextContent(text)], details)


def _entries(workspace: Workspace, path: Path) -> list[tuple[str, str]]:
    """Each entry's name, and the line that shows it. Raises `OSError`."""
    if not HAS_AT:
        with os.scandir(path) as found:
            return [(entry.name, _marked(entry, None, path)) for entry in found]
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if path == workspace.root:
        descriptor = os.open(path, flags)
    else:
        with held(workspace.root, path) as place:
            descriptor = os.open(place.name, flags, dir_fd=place.folder)
    try:
        with os.scandir(descriptor) as found:
            return [(entry.name, _marked(entry, descriptor, path)) for entry in found]
    finally:
        os.close(descriptor)


def _marked(entry: os.DirEntry[str], folder: int | None, path: Path) -> str:
    if entry.is_symlink():
        try:
            leads = os.readlink(entry.name if folder is not None else path / entry.name, dir_fd=folder)
        except OSError:
            leads = "?"
        return f"{shown(entry.name)} -> {shown(leads)}"
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
    except OSError:
        is_folder = False
    return shown(entry.name) + ("/" if is_folder else "")
