"""The tool `write`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..agent._cut import readable_size
from ..agent.tool import OnUpdate, Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._diff import unified_diff
from ._files import held, kind, read_whole, replace_file
from ._filetype import is_binary
from ._paths import Workspace, reason
from ._thread_tool import ThreadTool
from ._truncate import count
from ._turns import file_key, in_turn

MAX_DIFFED = 5 * 1024 * 1024

DESCRIPTION = (
    "Create a text file, or replace one whole; missing folders are made. Not for changing parts of a file (edit), nor "
    "for appending (bash or python)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to write, relative to the root folder or absolute inside it."},
        "content": {"type": "string", "description": "All of the file's text."},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class WriteDetails:
    """`details` of a write.

    Args:
        path: Relative to the root.
        action: What happened to the file.
        diff: Unified diff from the old content; empty if it was the same, binary, or over 5 MB.
        bytes: Size of the new content.
    """

    path: str
    action: Literal["created", "replaced"]
    diff: str
    bytes: int


def write_tool(workspace: Workspace) -> Tool:
    """A tool that writes files of `workspace`."""

    async def execute(
        tool_call_id: str, params: dict[str, Any], signal: AbortSignal | None, on_update: OnUpdate | None
    ) -> ToolResult:
        path = workspace.find(params["path"])
        watch = signal or AbortSignal()
        return await in_turn(file_key(path), lambda: _write(workspace, params["path"], params["content"], watch))

    return ThreadTool("write", DESCRIPTION, PARAMETERS, execute, approval=True)


def _write(workspace: Workspace, given: str, content: str, signal: AbortSignal) -> ToolResult:
    path = workspace.find(given)
    name = workspace.shown(path)
    if given.endswith("/") or path == workspace.root:
        raise ToolError(f"{name} is a folder; give the path of a file.")
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The content holds {content[error.start]!a} at {error.start}, which is no character; nothing was written."
        ) from error
    before = _status(workspace, path, name)
    old: bytes | None = None
    if before is not None and before.st_size <= MAX_DIFFED:
        old, before = read_whole(workspace, path, MAX_DIFFED)
    signal.raise_if_aborted()
    replace_file(workspace, path, data, before=before, old=old)
    diff = ""
    if len(data) <= MAX_DIFFED and (before is None or (old is not None and not is_binary(old))):
        text = (old or b"").decode("utf-8", "replace")
        diff = unified_diff(text, content, name, created=before is None)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    action: Literal["created", "replaced"] = "created" if before is None else "replaced"
    said = f"{action.capitalize()} {name} ({count(lines, 'line')}, {readable_size(len(data))})."
    return ToolResult([TextContent(said)], WriteDetails(name, action, diff, len(data)))


def _status(workspace: Workspace, path: Path, name: str) -> os.stat_result | None:
    """Of the file that is there; None if there is none. Raises `ToolError` if a file cannot go there."""
    try:
        with held(workspace.root, path) as place:
            status = place.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {reason(error)}.") from error
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{name} is {kind(status.st_mode)}, not a file.")
    return status
