"""How fast a card may talk to the page: a kernel that floods its front end never comes to rest."""

from __future__ import annotations

from collections.abc import Callable

MESSAGE = 800
"""Bytes that a widget message costs apart from its value: headers, parent header, signature."""
NEW_WIDGET = 1_400
"""The same for a new widget."""
_PER_SECOND = 280_000
_BURST = 100_000
_SMOOTH = 30_000
_FASTEST = 0.1
_PER_ROW = 0.02
_MOST, _LEAST = 8_000, 4_000
_FAST_STREAM = 4_000


class Pace:
    """Two limits. All messages together: a bucket of bytes per second. Text that streams: after a smooth beginning,
    bytes per second for redrawing its open end, fewer the faster it comes, because nobody reads faster than 15 lines
    a second; so a long answer costs a small multiple of its own size."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(_BURST)
        self._at = clock()
        self._smooth = float(_SMOOTH)
        self._text_at = 0.0
        self._text_cost = 0
        self._speed = 0.0  # characters per second, averaged

    def spent(self, size: int) -> None:
        self._left -= size

    def room(self) -> bool:
        """Whether more may be sent now."""
        now = self._clock()
        self._left = min(_BURST, self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        return self._left > 0

    def text_due(self) -> bool:
        """Whether text that streams should be redrawn now."""
        waited = self._clock() - self._text_at
        if self._smooth > 0:
            return waited >= _FASTEST
        budget = _MOST - (_MOST - _LEAST) * min(1.0, self._speed / _FAST_STREAM)
        return waited >= max(_FASTEST, self._text_cost / budget)

    def row_due(self, drawn_at: float, running: int) -> bool:
        """Whether one of `running` tool calls, drawn last at `drawn_at`, may show its progress again."""
        return self._clock() - drawn_at >= max(_FASTEST, _PER_ROW * running)

    def text_sent(self, characters: int, redrawn: int) -> None:
        """`characters` have come since the last time; their open end took `redrawn` bytes."""
        now = self._clock()
        waited = max(0.001, now - self._text_at)
        self._speed += (min(1e6, characters / waited) - self._speed) * min(1.0, waited)
        self._text_at = now
        self._text_cost = redrawn
        self._smooth -= redrawn
