"""Server-sent events, decoded from bytes as they come (https://html.spec.whatwg.org/#event-stream-interpretation)."""

from __future__ import annotations

from typing import TypeAlias

SseEvent: TypeAlias = tuple[str, bytes]
"""`(event name, data)`; the name is empty where the server gave none, data is UTF-8."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseDecoder:
    """Turns the bytes of a stream, however they are cut, into its events.

    Lines end with LF, CRLF or CR and nothing else, so U+2028 stays inside its text. Comments, and events without
    data, are left out.
    """

    __slots__ = ("_at_start", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # an unfinished event, already without carriage returns but for a last one
        self._at_start = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes."""
        pieces = self._pieces
        if not self._at_start and b"\n" not in data and b"\r" not in data and not _ends_with_cr(pieces):
            pieces.append(data)
            return []
        if pieces:
            pieces.append(data)
            data = b"".join(pieces)
            pieces.clear()
        if self._at_start:
            if len(data) < 3 and _BYTE_ORDER_MARK.startswith(data):
                pieces.append(data)
                return []
            data = data.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        last_cr = b""
        if b"\r" in data:
            if data.endswith(b"\r"):  # the first half of CRLF, perhaps
                data, last_cr = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        blocks = data.split(b"\n\n")
        rest = blocks.pop() + last_cr
        if rest:
            pieces.append(rest)
        events: list[SseEvent] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(("", block[6:]))
            elif event := _event(block):
                events.append(event)
        return events

    def flush(self) -> list[SseEvent]:
        """The last event of a stream that has ended, if it lacked its blank line."""
        rest = b"".join(self._pieces).replace(b"\r", b"\n")
        self._pieces.clear()
        event = _event(rest)
        return [event] if event else []


def _ends_with_cr(pieces: list[bytes]) -> bool:
    return bool(pieces) and pieces[-1].endswith(b"\r")


def _event(block: bytes) -> SseEvent | None:
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return (name, b"\n".join(data)) if data else None
