"""The tool `read`."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from ..agent._cut import MAX_BYTES, MAX_LINES, readable_size
from ..agent.tool import Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent, UserContent
from ..errors import ToolError
from ._cells import Cell, notebook_cells
from ._files import opened
from ._filetype import SNIFF, binary_type, image_type, is_binary, utf16
from ._image import MAX_FILE, image_content
from ._lines import LineReader
from ._paths import Workspace
from ._thread_tool import thread_tool
from ._truncate import count, cut_bytes

COUNTED = 256 * 1024 * 1024
"""Bytes after the shown part that are read to say how many lines there are."""
MAX_NOTEBOOK = 100 * 1024 * 1024
MAX_NOTEBOOK_IMAGES = 8

DESCRIPTION = (
    "Read a file: text by lines, an image (png, jpg, gif, webp, bmp) as a picture, a notebook (.ipynb) as cells with "
    f"their outputs. At most {MAX_LINES:,} lines or {MAX_BYTES // 1024} KB at once; the end of the text says how to go "
    "on. Not for folders (ls), for searching (grep, find), or for data that python can load, like large CSV files."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "File to read, relative to the root folder or absolute inside it."},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "Line to begin with, 1 is the first; in a notebook, the cell.",
        },
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines, or cells, to read at most."},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class ReadDetails:
    """`details` of a read.

    Args:
        kind: `text`, `image` or `notebook`.
        path: Relative to the root.
        first, last: Lines or cells shown, from 1; both 0 if none.
        total: Lines or cells in the file; None where they were not counted.
        cut: Why it ended before the end: `lines`, `bytes`, or empty.
        mime_type, width, height: Of an image file, before scaling.
    """

    kind: str
    path: str
    first: int = 0
    last: int = 0
    total: int | None = None
    cut: str = ""
    mime_type: str = ""
    width: int = 0
    height: int = 0


def read_tool(workspace: Workspace) -> Tool:
    """A tool that reads files of `workspace`."""

    return thread_tool("read", DESCRIPTION, PARAMETERS, partial(_read, workspace))


def _read(workspace: Workspace, params: dict[str, Any], signal: AbortSignal) -> ToolResult:
    given, offset, limit = params["path"], params.get("offset"), params.get("limit")
    path = workspace.find(given, reading=True)
    try:
        with opened(workspace, path) as (file, status):
            head = file.read(SNIFF)
            file.seek(0)
            name = workspace.shown(path)
            if mime_type := image_type(head):
                return _image(_all(file, status.st_size, MAX_FILE, name), mime_type, name)
            if encoding := utf16(head):
                text = _all(file, status.st_size, MAX_FILE, name).decode(encoding, "replace")
                return _text(io.BytesIO(text.encode()), len(text), name, offset, limit, signal, "UTF-16")
            if is_binary(head):
                raise ToolError(
                    f"{name} is binary ({binary_type(head, path.name)}, {readable_size(status.st_size)}) and cannot be "
                    f"read as text. Load it with python if you need what is in it."
                )
            if path.suffix.lower() == ".ipynb" and status.st_size <= MAX_NOTEBOOK:
                cells = _parsed(_all(file, status.st_size, MAX_NOTEBOOK, name))
                if cells is not None:
                    return _notebook(cells, name, offset, limit)
                file.seek(0)
            return _text(file, status.st_size, name, offset, limit, signal)
    except FileNotFoundError as error:
        raise workspace.missing(path, given) from error


def _all(file: BinaryIO, expected: int, limit: int, name: str) -> bytes:
    data = b"" if expected > limit else _read_up_to(file, limit + 1)
    if max(expected, len(data)) > limit:
        found = readable_size(max(expected, len(data)))
        raise ToolError(f"{name} is {found}; more than {readable_size(limit)} is not read at once.")
    return data


def _read_up_to(file: BinaryIO, limit: int) -> bytes:
    chunks = []
    while limit > 0 and (chunk := file.read(min(limit, 1 << 20))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def _text(
    file: Any, length: int, name: str, offset: int | None, limit: int | None, signal: AbortSignal, was: str = ""
) -> ToolResult:
    reader = LineReader(file, signal.raise_if_aborted)
    first = max(1, offset or 1)
    before = reader.skip(first - 1)
    shown: list[str] = []
    used, cut, partial, odd = 0, "", 0, False
    wanted = MAX_LINES if limit is None else min(limit, MAX_LINES)
    while (line := reader.line(MAX_BYTES + 8)) is not None:
        if len(shown) == wanted:
            cut = "lines"
            break
        text = line.text.removeprefix("\ufeff") if first == 1 and not shown else line.text
        needed = len(text.encode()) + bool(shown)
        if used + needed > MAX_BYTES:
            cut = "bytes"
            if shown:
                break
            text = cut_bytes(text, MAX_BYTES)
            partial = line.length - len(text.encode())
        odd = odd or "\ufffd" in text
        shown.append(text)
        used += needed
        if partial:
            break
    if not shown and (offset or 1) > 1:
        raise ToolError(f"offset {offset} is past the end of {name}, which has {count(before, 'line')}.")
    last = first - 1 + len(shown)
    total: int | None = last
    if cut:
        unread = 0 if partial else 1
        rest = reader.skip(1 << 62, COUNTED)
        total = last + unread + rest if reader.scanned >= length else None
    notes = _notes(first, last, total, cut, partial, limit, length)
    if was:
        notes.append(f"The file is {was}; shown as UTF-8.")
    elif odd:
        notes.append("Bytes that are not UTF-8 are shown as \ufffd.")
    content = "\n".join(shown) if shown else "(empty file)"
    if notes:
        content += "\n\n[" + " ".join(notes) + "]"
    first = first if shown else 0
    return ToolResult([TextContent(content)], ReadDetails("text", name, first, last if shown else 0, total, cut))


def _notes(
    first: int, last: int, total: int | None, cut: str, partial: int, limit: int | None, length: int
) -> list[str]:
    if not cut or (total == last and not partial):
        return []
    notes = []
    if partial:
        notes.append(f"Line {last} is cut: {readable_size(partial)} of it are left out.")
    whole = f"{total:,}" if total is not None else f"more, in {readable_size(length)}"
    if total is None or total > last:
        why = f" ({MAX_BYTES // 1024} KB limit)" if cut == "bytes" else ""
        notes.append(f"Lines {first}-{last} of {whole}{why}. Go on with offset={last + 1}.")
    return notes


def _image(data: bytes, mime_type: str, name: str) -> ToolResult:
    image = image_content(data, mime_type, name)
    width, height = image.original
    text = f"[{name}: {mime_type}, {width} x {height}{'; ' + image.note if image.note else ''}]"
    details = ReadDetails("image", name, mime_type=mime_type, width=width, height=height)
    return ToolResult((TextContent(text), image.content), details)


def _parsed(data: bytes) -> list[Cell] | None:
    """None if it is no notebook after all; it is then shown as the text that it is."""
    try:
        return notebook_cells(json.loads(data.decode("utf-8-sig")))
    except (ValueError, RecursionError):
        return None


def _notebook(cells: list[Cell], name: str, offset: int | None, limit: int | None) -> ToolResult:
    first = max(1, offset or 1)
    if first > max(1, len(cells)):
        raise ToolError(f"offset {offset} is past the end of {name}, which has {count(len(cells), 'cell')}.")
    texts: list[str] = []
    images: list[tuple[str, str]] = []
    used, cut = 0, ""
    for cell in cells[first - 1 :]:
        if limit is not None and len(texts) == limit:
            cut = "lines"
            break
        text, needed = cell.text, len(cell.text.encode("utf-8", "replace"))
        if used + needed > MAX_BYTES:
            cut = "bytes"
            if texts:
                break
            text = cut_bytes(text, MAX_BYTES)
            text += f"\n[{readable_size(needed - len(text.encode()))} of this cell are left out]"
        texts.append(text)
        images += cell.images
        used += needed
    last = first - 1 + len(texts)
    if last < len(cells):
        texts.append(f"[Cells {first}-{last} of {len(cells)}. Go on with offset={last + 1}.]")
    blocks: list[UserContent] = [TextContent("\n\n".join(texts) or "(a notebook without cells)")]
    blocks += _output_images(images, name)
    return ToolResult(blocks, ReadDetails("notebook", name, first if cells else 0, last, len(cells), cut))


def _output_images(images: list[tuple[str, str]], name: str) -> list[UserContent]:
    blocks: list[UserContent] = []
    for mime_type, encoded in images[:MAX_NOTEBOOK_IMAGES]:
        try:
            data = base64.b64decode(encoded, validate=True)
            blocks.append(image_content(data, mime_type, f"an output image in {name}").content)
        except (ValueError, ToolError) as error:
            blocks.append(TextContent(f"[an output image cannot be shown: {error}]"))
    if len(images) > MAX_NOTEBOOK_IMAGES:
        blocks.append(TextContent(f"[{len(images) - MAX_NOTEBOOK_IMAGES} more output images are left out]"))
    return blocks
