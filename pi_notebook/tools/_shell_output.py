"""What a command writes: pieces for the eye while it runs, the end of it for the model, the whole in a file if long."""

from __future__ import annotations

import codecs
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..agent._cut import MAX_BYTES, MAX_LINES, readable_size
from ._truncate import Cut, cut_tail

KEPT = 512 * 1024
"""Bytes of the end that are held in memory."""
MAX_FILE = 200 * 1024 * 1024
EVERY = 0.1
"""Seconds between two pieces."""
MAX_PIECE = 20_000
"""Characters of one piece: 200 kB/s at most."""

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b\n]*\x1b\\"
    r"|\x1b[ -/]*[0-~]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]{0,200}\x1b?|[ -/]*)?\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufff9-\ufffb]")


def plain(text: str) -> str:
    """`text` without terminal sequences and control characters; tabs, newlines and carriage returns stay."""
    return _CONTROLS.sub("", _ANSI.sub("", text))


def as_on_screen(text: str) -> str:
    """`plain`, with lines that were written over (progress bars) as they looked last."""
    text = plain(text).replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(_last_look(line) for line in text.split("\n"))


def _last_look(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip() if "\r" in line else line


class ShellOutput:
    """Collects the bytes of one command.

    Args:
        show: Told new text, at most ten times a second and `MAX_PIECE` characters each; None shows nothing.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.total_bytes = 0
        self.newlines = 0
        self.path: Path | None = None
        self.problem = ""
        self._kept = bytearray()
        self._file: int | None = None
        self._in_file = 0
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending: list[str] = []
        self._pending_size = 0
        self._skipped = 0
        self._shown_at = 0.0

    def feed(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self.newlines += data.count(b"\n")
        self._kept += data
        if self._file is not None:
            self._save(data)
        elif not self.problem and (self.total_bytes > MAX_BYTES or self.newlines > MAX_LINES):
            self._begin_file()
        if len(self._kept) > 2 * KEPT:
            del self._kept[:-KEPT]
        if self._show is not None:
            self._pending.append(self._decoder.decode(data))
            self._pending_size += len(data)
            if self._pending_size > 4 * MAX_PIECE:
                self._shorten()

    def _begin_file(self) -> None:
        try:
            self._file, name = tempfile.mkstemp(prefix="pi-bash-", suffix=".log")
        except OSError as error:
            self.problem = error.strerror or str(error)
            return
        self.path = Path(name)
        self._save(bytes(self._kept))

    def _save(self, data: bytes) -> None:
        assert self._file is not None
        data = data[: max(0, MAX_FILE - self._in_file)]
        try:
            while data:
                written = os.write(self._file, data)
                self._in_file += written
                data = data[written:]
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._close_file()
            if self.path is not None:
                self.path.unlink(missing_ok=True)
                self.path = None

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _shorten(self) -> None:
        text = "".join(self._pending)
        self._skipped += max(0, len(text) - MAX_PIECE)
        self._pending = [text[-MAX_PIECE:]]
        self._pending_size = len(self._pending[0])

    def tick(self, *, last: bool = False) -> None:
        """Show what has come in, if it is time."""
        if self._show is None or (not last and time.monotonic() - self._shown_at < EVERY):
            return
        if last:
            self._pending.append(self._decoder.decode(b"", True))
        text = "".join(self._pending)
        self._pending, self._pending_size = [], 0
        if not last and (unfinished := _UNFINISHED.search(text)):
            self._pending = [text[unfinished.start() :]]
            text = text[: unfinished.start()]
        text = plain(text)
        if len(text) > MAX_PIECE:
            self._skipped += len(text) - MAX_PIECE
            text = text[-MAX_PIECE:]
        if self._skipped:
            text = f"\n[… {self._skipped:,} characters …]\n{text}"
            self._skipped = 0
        if text:
            self._shown_at = time.monotonic()
            self._show(text)

    def close(self) -> None:
        """Take no more. Shows what is left."""
        self.tick(last=True)
        self._close_file()

    def end(self) -> tuple[str, str]:
        """The last lines within the limits, and a note on what is missing (empty if nothing is)."""
        start = 0
        if self.total_bytes > len(self._kept):
            start = self._kept.find(b"\n") + 1
        cut = cut_tail(as_on_screen(self._kept[start:].decode("utf-8", "replace")))
        if self.total_bytes <= len(self._kept) and not cut.by:
            if self.path is not None:  # long only by what was written over
                self.path.unlink(missing_ok=True)
                self.path = None
            return cut.text, ""
        return cut.text, self._note(cut)

    def _note(self, cut: Cut) -> str:
        lines = self.newlines + (not self._kept.endswith(b"\n"))
        missing = readable_size(max(0, self.total_bytes - cut.kept_bytes))
        if cut.inside_line:
            note = f"The end of line {lines:,}; {missing} before it are left out."
        else:
            first = max(1, lines - cut.lines + 1)
            note = f"Lines {first:,}-{lines:,} of {lines:,}; {missing} before them are left out."
        if self.path is None:
            return f"{note} The whole could not be kept: {self.problem}."
        if self.total_bytes > self._in_file:
            return f"{note} The first {readable_size(self._in_file)} are in {self.path}."
        return f"{note} The whole is in {self.path}."
