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

    __slots__ = ("_after_cr", "_at_start", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # an unfinished event; lines end with LF
        self._after_cr = False  # so that an LF is the second half of CRLF
        self._at_start = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Bytes are joined once, when their event is complete."""
        pieces = self._pieces
        if self._at_start:
            data = b"".join([*pieces, data])
            pieces.clear()
            if len(data) < 3 and _BYTE_ORDER_MARK.startswith(data):
                pieces.append(data)
                return []
            data = data.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return []
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if pieces:
            is_blank_line = data.startswith(b"\n") and pieces[-1].endswith(b"\n")
            if not is_blank_line and b"\n\n" not in data:
                pieces.append(data)
                return []
            pieces.append(data)
            data = b"".join(pieces)
            pieces.clear()
        blocks = data.split(b"\n\n")
        if rest := blocks.pop():
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
        rest = b"".join(self._pieces)
        self._pieces.clear()
        event = _event(rest)
        return [event] if event else []


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
