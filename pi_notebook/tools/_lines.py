"""Reading a file by lines in bounded memory, whatever its size and however long its lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

CHUNK = 1 << 20
PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """`data` is the line without its ending, or its beginning; `length` is all of it, in bytes."""

    data: bytes
    length: int

    @property
    def text(self) -> str:
        """As UTF-8; a character cut at the end is dropped, other undecodable bytes become U+FFFD."""
        data = self.data
        if len(data) < self.length:
            for back in range(1, min(4, len(data) + 1)):
                if data[-back] >= 0xC0:
                    data = data[:-back]
                    break
                if data[-back] < 0x80:
                    break
        return data.decode("utf-8", "replace")


class LineReader:
    """Lines of `file`; they end at `\\n`, a `\\r` before it goes too. `check()` is called at times, and may raise."""

    def __init__(self, file: IO[bytes], check: Callable[[], object] = lambda: None) -> None:
        self._file = file
        self._check = check
        self._chunk = b""
        self._at = 0
        self.scanned = 0

    def _more(self) -> bool:
        if self._at < len(self._chunk):
            return True
        self._check()
        self._chunk = self._file.read(CHUNK)
        self._at = 0
        self.scanned += len(self._chunk)
        return bool(self._chunk)

    def skip(self, lines: int, max_bytes: int | None = None) -> int:
        """Pass over `lines` lines, and return how many there were: fewer at the end, or once `max_bytes` were read."""
        skipped, inside = 0, False
        stop = None if max_bytes is None else self.scanned + max_bytes
        while skipped < lines and self._more():
            if stop is not None and self.scanned > stop:
                return skipped
            there = self._chunk.count(b"\n", self._at)
            if skipped + there < lines:
                skipped += there
                inside = not self._chunk.endswith(b"\n")
                self._at = len(self._chunk)
                continue
            while skipped < lines:
                self._at = self._chunk.index(b"\n", self._at) + 1
                skipped += 1
            inside = False
        return skipped + inside

    def piece(self, wanted: Callable[[bytes], bool]) -> tuple[int, int]:
        """Look at the next whole lines at once, `PIECE` bytes of them: if `wanted` is false of them they are passed
        over. Returns how many were passed over, and how many are there to be read if they were not."""
        if not self._more():
            return 0, 0
        end = self._chunk.rfind(b"\n", self._at, self._at + PIECE) + 1
        if not end:
            return 0, 1
        data = self._chunk[self._at : end]
        lines = data.count(b"\n")
        if wanted(data):
            return 0, lines
        self._at = end
        return lines, 0

    def line(self, cap: int) -> Line | None:
        """The next line, at most `cap` bytes of it; None at the end."""
        if not self._more():
            return None
        pieces: list[bytes] = []
        length = 0
        carriage_return = False
        while self._more():
            end = self._chunk.find(b"\n", self._at)
            piece_end = len(self._chunk) if end < 0 else end
            piece_length = piece_end - self._at
            if length < cap:
                pieces.append(self._chunk[self._at : min(piece_end, self._at + cap - length)])
            if piece_length:
                carriage_return = self._chunk[piece_end - 1] == 0x0D
            length += piece_length
            self._at = piece_end + (end >= 0)
            if end >= 0:
                break
        else:
            carriage_return = False
        kept = b"".join(pieces)
        if carriage_return:
            length -= 1
            kept = kept[:length]
        return Line(kept, length)
