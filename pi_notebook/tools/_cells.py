"""A notebook file as cells: what `read` shows of an `.ipynb`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._truncate import cut_head, cut_tail

MAX_OUTPUT_LINES = 40
MAX_OUTPUT_BYTES = 4_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell for a model. `images` are (MIME type, base64) of its outputs; `text` names where each belongs."""

    text: str
    images: list[tuple[str, str]] = field(default_factory=list)


def notebook_cells(notebook: Any) -> list[Cell]:
    """All cells of a notebook as parsed from JSON, format 3 or 4, numbered from 1.

    Raises:
        ValueError: It is no notebook.
    """
    if not isinstance(notebook, Mapping):
        raise ValueError("it is no JSON object")
    raw = notebook.get("cells")
    if raw is None and isinstance(notebook.get("worksheets"), list):
        raw = [
            cell for sheet in notebook["worksheets"] if isinstance(sheet, Mapping) for cell in sheet.get("cells", ())
        ]
    if not isinstance(raw, list):
        raise ValueError("it has no list of cells")
    return [_cell(number, cell) for number, cell in enumerate(raw, 1) if isinstance(cell, Mapping)]


def _cell(number: int, cell: Mapping[str, Any]) -> Cell:
    kind = str(cell.get("cell_type", "unknown"))
    title = f"cell {number}, {kind}"
    executed = cell.get("execution_count", cell.get("prompt_number"))
    if executed is not None:
        title += f", [{executed}]"
    parts = [f"--- {title} ---", _joined(cell.get("source", cell.get("input", "")))]
    images: list[tuple[str, str]] = []
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, Mapping):
            parts.append(_output(output, images))
    return Cell("\n".join(part.rstrip("\n") for part in parts if part), images)


def _output(output: Mapping[str, Any], images: list[tuple[str, str]]) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        name = output.get("name", output.get("stream", "stdout"))
        return _labelled(f"output, {name}", _joined(output.get("text", "")))
    if kind in ("error", "pyerr"):
        lines = output.get("traceback")
        if not isinstance(lines, list) or not lines:
            lines = [f"{output.get('ename')}: {output.get('evalue')}"]
        return _labelled("error", _ANSI.sub("", "\n".join(map(str, lines))), tail=True)
    data = output.get("data")
    if not isinstance(data, Mapping):  # format 3 keeps the data beside the type
        old = {"text": "text/plain", "html": "text/html", "png": "image/png", "jpeg": "image/jpeg"}
        data = {old[key]: output[key] for key in old if key in output}
    label = "result" if kind in ("execute_result", "pyout") else "output"
    for mime_type in ("image/png", "image/jpeg"):
        if mime_type in data:
            images.append((mime_type, re.sub(r"\s", "", _joined(data[mime_type]))))
            label += f", {mime_type}"
            break
    for mime_type in ("text/plain", "text/markdown", "text/html"):
        if mime_type in data:
            return _labelled(label, _joined(data[mime_type]))
    return _labelled(label, "" if images else f"({', '.join(map(str, data)) or 'nothing'})")


def _labelled(label: str, text: str, *, tail: bool = False) -> str:
    cut = (cut_tail if tail else cut_head)(text, MAX_OUTPUT_LINES, MAX_OUTPUT_BYTES)
    missing = f"[{cut.left_out} left out]" if cut.by else ""
    parts = [missing, cut.text] if tail else [cut.text.rstrip("\n"), missing]
    return "\n".join([f"[{label}]", *(part for part in parts if part)])


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(map(str, source))
    return "" if source is None else str(source)
