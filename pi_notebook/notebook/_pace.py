"""How fast a card may talk to the page: a kernel that floods its front end never comes to rest."""

from __future__ import annotations

from collections.abc import Callable

MESSAGE = 900
"""Bytes that a widget message costs apart from its value: headers, parent header, signature."""
NEW_WIDGET = 1_500
"""The same for a new widget."""
_PER_SECOND = 350_000
_BURST = 250_000
_CREDIT = 32_000
_FASTEST, _SLOWEST = 0.06, 1.0


class Pace:
    """Two limits. All messages together: a bucket of bytes per second. Streamed text: in the long run a small
    multiple of its own size, so a fast or a long answer is redrawn less often than a short one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(_BURST)
        self._at = clock()
        self._text_at = 0.0
        self._credit = float(_CREDIT)

    def spent(self, size: int) -> None:
        self._left -= size

    def room(self) -> bool:
        """Whether more may be sent now."""
        now = self._clock()
        self._left = min(_BURST, self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        return self._left > 0

    def received(self, characters: int) -> None:
        """So much text has arrived."""
        self._credit += 2.2 * characters

    def text_due(self) -> bool:
        """Whether streamed text should be redrawn now."""
        slow = min(_SLOWEST, 0.25 * (1 - self._credit / 64_000))
        return self._clock() - self._text_at >= (_FASTEST if self._credit > 0 else slow)

    def text_sent(self, size: int) -> None:
        self._text_at = self._clock()
        self._credit -= size
        self.spent(size)
