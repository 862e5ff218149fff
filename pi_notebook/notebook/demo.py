"""`python -m pi_notebook.notebook.demo`: run the example notebook in a real kernel and print it as it goes.

The kernel gets no key of the person and asks no server on the machine, unless a model is named.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

from ..ai.discovery import NO_LOCAL
from ..ai.keys import key_variables
from .magics import MODEL_VARIABLE

RULE = "─" * 78


class _Printer(NotebookClient):
    """Prints each output when it comes, and of an output that is replaced only what has been added."""

    def print_cell(self, cell: Any, cell_index: int) -> None:
        print(f"{RULE}\n{cell.source.strip()}\n")

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        content = msg["content"]
        kind = msg["msg_type"]
        if kind == "stream":
            self._write(content["text"])
        elif kind in ("display_data", "execute_result", "update_display_data"):
            self._show(content["data"].get("text/plain", ""), content.get("transient", {}).get("display_id"))
        elif kind == "error":
            self._write(f"{content['ename']}: {content['evalue']}\n")
        return super().process_message(msg, cell, cell_index)

    def _show(self, text: str, display_id: str | None) -> None:
        """Print `text`; of a display that was printed before, the lines from the first that has changed."""
        lines = text.rstrip("\n").split("\n")
        shown: dict[str | None, list[str]] = self.__dict__.setdefault("_shown", {})
        before = shown.get(display_id, []) if display_id else []
        same = next((i for i, (old, new) in enumerate(zip(before, lines, strict=False)) if old != new), len(before))
        shown[display_id] = lines
        self._write("".join(f"{line}\n" for line in lines[same:]))

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def environment(model: str | None) -> dict[str, str]:
    """This process's environment for the kernel: as it is if a model is named, else without keys and servers."""
    if model:
        return {**os.environ, MODEL_VARIABLE: model}
    keys = key_variables()
    kept = {name: value for name, value in os.environ.items() if name not in keys}
    return kept | {NO_LOCAL: "1", MODEL_VARIABLE: "practice"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pi_notebook.notebook.demo", description=__doc__)
    parser.add_argument("--model", help="provider:model to ask instead of the built-in practice model")
    parser.add_argument("--notebook", type=Path, default=Path("examples.ipynb"))
    parser.add_argument("--html", type=Path, default=Path("build/examples.html"))
    options = parser.parse_args()
    notebook = nbformat.read(options.notebook, as_version=4)
    client = _Printer(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": "."}})
    client.on_cell_execute = client.print_cell
    failed = False
    try:
        client.execute(env=environment(options.model))
    except CellExecutionError:
        failed = True
    options.html.parent.mkdir(parents=True, exist_ok=True)
    html, _ = HTMLExporter().from_notebook_node(notebook)
    options.html.write_text(html, "utf-8")
    print(f"{RULE}\nWritten: {options.html}")
    print("Next: `make lab` opens this notebook in JupyterLab, where you can click Approve yourself.")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
