"""A card in a cell's output: live while the run lasts, a static transcript for good after it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from .card import Card
from .transcript import static_bundle
from .view import RunView

Publish = Callable[..., Any]
"""`publish(data, display_id=..., update=...)`: displays a raw mime bundle in the cell, from any thread."""


class CardDisplay:
    """Shows `card` in the cell and leaves the transcript of `view` in its place."""

    def __init__(self, card: Card, view: RunView, publish: Publish) -> None:
        self._card = card
        self._view = view
        self._publish = publish
        self._id = f"pi-notebook-{uuid.uuid4().hex}"

    def show(self) -> None:
        """Display the card. From now on `card.view_count` tells whether a front end has drawn it."""
        self._card.count_views(True)
        bundle = dict(self._card.widget._repr_mimebundle_())
        bundle["text/plain"] = "The agent is running. This front end shows no widgets; the transcript follows."
        self._publish(bundle, display_id=self._id, update=False)

    def finish(self, *, page_reloaded: bool = False) -> None:
        """Put the transcript in the card's place and close its widgets.

        A page that was reloaded in the middle of the run no longer knows which output to replace: for it the box stays
        open, with the transcript inside.
        """
        self._card.count_views(False)
        self._publish(static_bundle(self._view), display_id=self._id, update=True)
        if page_reloaded:
            self._card.freeze()
        else:
            self._card.close()
