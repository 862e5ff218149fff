"""The body of a reply, whatever the server calls it: server-sent events, one JSON document, or a plain text."""

from __future__ import annotations

import re

from ._sse import SseDecoder, SseEvent

_BLANK = b"\xef\xbb\xbf \t\r\n"  # and the bytes of a byte order mark, none of which begins anything else
_NO_TEXT = re.compile(rb"^(?::|(?:data|event|id|retry)(?=[:\r\n]|\Z)).*$", re.MULTILINE)


class BodyDecoder:
    """Turns the bytes of a body, however they are cut, into events.

    The first character decides, not the content type: a bracket begins a document, which is one event with an empty
    name when the body has ended. A body of other lines than those of events is a text (see `text`).
    """

    __slots__ = ("_events", "_kept", "_not_begun")

    def __init__(self) -> None:
        self._events: SseDecoder | None = SseDecoder()  # None: the body is a document
        self._kept: list[bytes] | None = []  # the whole body, as long as no event has come
        self._not_begun = True

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes."""
        kept, decoder = self._kept, self._events
        if decoder is None:
            assert kept is not None
            kept.append(data)
            return []
        if kept is not None:
            kept.append(data)
            if self._not_begun and (begin := data.lstrip(_BLANK)[:1]):
                self._not_begun = False
                if begin in (b"{", b"["):
                    self._events = None
                    return []
        events = decoder.feed(data)
        if events:
            self._kept = None
        return events

    def flush(self) -> list[SseEvent]:
        """The last event of a body that has ended."""
        if self._events is None:
            return [("", self._whole())]
        events = self._events.flush()
        if events:
            self._kept = None
        return events

    @property
    def text(self) -> str:
        """What a body says that held no event, to be read when it has ended."""
        return _NO_TEXT.sub(b"", self._whole()).strip().decode("utf-8", "replace") if self._events else ""

    def _whole(self) -> bytes:
        return b"".join(self._kept or ()).strip(_BLANK)
