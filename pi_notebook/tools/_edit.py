"""The tool `edit`."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any

from ..agent._cut import readable_size
from ..agent.tool import OnUpdate, Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._diff import unified_diff
from ._files import read_whole, replace_file
from ._filetype import binary_type, image_type, is_binary, utf16
from ._paths import Workspace
from ._replace import Edit, apply_edits
from ._thread_tool import ThreadTool
from ._truncate import count
from ._turns import file_key, in_turn

MAX_FILE = 50 * 1024 * 1024

DESCRIPTION = (
    "Change parts of an existing text file. Each oldText must be in the file exactly once; all edits are looked for in "
    "the file as it is now and made together, or none. Keep oldText short, but unique. Not for new files or for "
    "rewriting most of a file (write), nor for a notebook that is open in Jupyter."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to change, relative to the root folder or absolute inside it."},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Replacements. They must not overlap: make changes of the same lines one edit.",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": {
                        "type": "string",
                        "description": "Text to replace, exactly as in the file, there only once.",
                    },
                    "newText": {"type": "string", "description": "Text to put in its place; may be empty."},
                },
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class EditDetails:
    """`details` of an edit.

    Args:
        path: Relative to the root.
        diff: Unified diff of the file.
        edits: How many were made.
        first_line: Line of the first change, from 1.
        tolerant: Indexes of the edits that were found only by ignoring differences in white space.
    """

    path: str
    diff: str
    edits: int
    first_line: int
    tolerant: tuple[int, ...] = ()


def edit_tool(workspace: Workspace) -> Tool:
    """A tool that edits files of `workspace`."""

    async def execute(
        tool_call_id: str, params: dict[str, Any], signal: AbortSignal | None, on_update: OnUpdate | None
    ) -> ToolResult:
        path = workspace.find(params["path"])
        edits = [Edit(edit["oldText"], edit["newText"]) for edit in params["edits"]]
        watch = signal or AbortSignal()
        return await in_turn(file_key(path), lambda: _edit(workspace, params["path"], edits, watch))

    return ThreadTool("edit", DESCRIPTION, PARAMETERS, execute, prepare_arguments=_prepare, approval=True)


def _prepare(arguments: Any) -> Any:
    """One edit given without the list becomes a list of one."""
    if isinstance(arguments, dict) and "edits" not in arguments and {"oldText", "newText"} <= arguments.keys():
        rest = {key: value for key, value in arguments.items() if key not in ("oldText", "newText")}
        return {**rest, "edits": [{"oldText": arguments["oldText"], "newText": arguments["newText"]}]}
    return arguments


def _edit(workspace: Workspace, given: str, edits: list[Edit], signal: AbortSignal) -> ToolResult:
    path = workspace.find(given)
    name = workspace.shown(path)
    try:
        old, before = read_whole(workspace, path, MAX_FILE)
    except FileNotFoundError as error:
        raise workspace.missing(path, given) from error
    text, encoding, mark = _decoded(old, path.name, name)
    changed, found = apply_edits(text, edits, name)
    try:
        new = mark + changed.encode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeEncodeError as error:
        raise ToolError(f"A newText holds {error.object[error.start]!a}, which is no character.") from error
    signal.raise_if_aborted()
    replace_file(workspace, path, new, before=before, old=old)
    tolerant = tuple(sorted(spot.index for spot in found if not spot.exact))
    first = _first_changed_line(text, changed)
    note = ""
    if tolerant:
        listed = ", ".join(f"edits[{index}]" for index in tolerant)
        note = f" Found only by ignoring differences in white space, so check the result: {listed}."
    return ToolResult(
        [TextContent(f"Changed {name}: {count(len(edits), 'edit')} made, the first at line {first}.{note}")],
        EditDetails(name, unified_diff(_visible(text), _visible(changed), name), len(edits), first, tolerant),
    )


def _decoded(data: bytes, file_name: str, name: str) -> tuple[str, str, bytes]:
    """Text, encoding and byte order mark. Undecodable bytes become lone surrogates, and the same bytes again."""
    if encoding := utf16(data[:4]):
        little = data.startswith(codecs.BOM_UTF16_LE)
        try:
            return (
                data[2:].decode("utf-16-le" if little else "utf-16-be"),
                f"{encoding}-{'le' if little else 'be'}",
                data[:2],
            )
        except UnicodeDecodeError as error:
            raise ToolError(f"{name} begins like UTF-16 but is not: {error.reason}. Nothing was changed.") from error
    if is_binary(data) or image_type(data):
        kind = image_type(data) or binary_type(data, file_name)
        raise ToolError(f"{name} is binary ({kind}, {readable_size(len(data))}); edit changes text files only.")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    return data[len(mark) :].decode("utf-8", "surrogateescape"), "utf-8", mark


def _visible(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _first_changed_line(old: str, new: str) -> int:
    for number, (one, other) in enumerate(zip(old.split("\n"), new.split("\n"), strict=False), 1):
        if one != other:
            return number
    return min(old.count("\n"), new.count("\n")) + 1
