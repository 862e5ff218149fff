"""A conversation as a file for people: Markdown, or a notebook whose cells hold the prompts and the transcripts."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..ai.keys import known_keys
from ..errors import PiNotebookError
from ._markdown import code_block, escape_markdown
from .conversation import CellTurn
from .past_runs import view_of
from .records import without_keys
from .transcript import render_markdown, static_bundle

_MARK = "<!-- exported by pi_notebook -->"


class ExportError(PiNotebookError):
    """The conversation cannot be written there."""


def export(turns: Sequence[CellTurn], path: Path, title: str) -> None:
    """Write the conversation to `path`, `.md` or `.ipynb`, wholly or not at all; keys in it become `***`.

    Raises:
        ExportError: The suffix is another one, the file cannot be written, or there is one that is no earlier export.
    """
    render = _FORMATS.get(path.suffix.lower())
    if render is None:
        raise ExportError(f"{path}: the name of an export ends in .md or .ipynb.")
    if path.exists() and not _is_export(path):
        raise ExportError(f"{path} exists and is no export of a conversation; name another file.")
    text = without_keys(render(turns, title), known_keys())
    try:
        _write(path, text.encode(errors="replace"))
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from None


def as_markdown(turns: Iterable[CellTurn], title: str) -> str:
    """Prompts as code blocks under their cell's number, each with its transcript."""
    blocks = [_MARK, f"# {escape_markdown(' '.join(title.split()))}"]
    for turn in turns:
        blocks += [
            f"## {escape_markdown(turn.label)}",
            code_block(_source(turn)),
            render_markdown(view_of(turn)).strip(),
        ]
    return "\n\n".join(blocks) + "\n"


def as_notebook(turns: Iterable[CellTurn], title: str) -> str:
    """The JSON of a notebook (nbformat 4.5) that would ask the same again."""
    setup = _cell("setup", "code", "%load_ext pi_notebook", execution_count=None, outputs=[])
    cells = [_cell("title", "markdown", f"# {escape_markdown(' '.join(title.split()))}"), setup]
    for number, turn in enumerate(turns, 1):
        count = turn.execution_count
        output = {"output_type": "display_data", "data": dict(static_bundle(view_of(turn))), "metadata": {}}
        cells.append(_cell(f"agent-{number}", "code", _source(turn), execution_count=count, outputs=[output]))
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "pi_notebook": {"exported": True},
    }
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _source(turn: CellTurn) -> str:
    return f"%%agent {turn.line}".rstrip() + f"\n{turn.prompt}"


def _cell(name: str, kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "cell_type": kind, "metadata": {}, "source": source, **more}


_FORMATS: dict[str, Callable[[Iterable[CellTurn], str], str]] = {".md": as_markdown, ".ipynb": as_notebook}


def _is_export(path: Path) -> bool:
    """Whether this module wrote the file, so that it may be written again."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".md":
            return text.startswith(_MARK)
        return bool(json.loads(text)["metadata"]["pi_notebook"]["exported"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _write(path: Path, data: bytes) -> None:
    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".export-")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def default_name(notebook: str, session: str) -> str:
    """`sales.ipynb` -> `sales-conversation.md`."""
    stem = notebook.removesuffix(".ipynb") + (f"-{session}" if session else "")
    return re.sub(r"[^\w. ()-]", "_", stem).strip(". ") + "-conversation.md"
