"""Which call made which pyplot figure, and a table of figures of its own for a call that others run beside."""

from __future__ import annotations

import contextvars
import sys
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

_made: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("pi_notebook_figures_made", default=None)
_own: contextvars.ContextVar[OrderedDict[Any, Any] | None] = contextvars.ContextVar(
    "pi_notebook_own_figures", default=None
)
_HOOK = f"{__name__}:note_figure"


def note_figure(figure: Any) -> None:
    """pyplot made `figure`; called by matplotlib (its `figure.hooks`), where the call that made it can be told."""
    made = _made.get()
    if made is not None:
        made.append(figure)


def begin_noting() -> tuple[list[Any], contextvars.Token[list[Any] | None]]:
    """The figures that pyplot makes from now on, in every thread that runs in a copy of this context; and what
    `end_noting` takes."""
    made: list[Any] = []
    return made, _made.set(made)


def end_noting(token: contextvars.Token[list[Any] | None]) -> None:
    _made.reset(token)


class OwnTable:
    """Inside, pyplot knows only the figures that are made inside: its current figure is nobody else's."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        # Without pyplot there is no table yet; see `take`.
        self._token = _own.set(OrderedDict()) if "matplotlib.pyplot" in sys.modules else None

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _own.reset(self._token)


class _TableByCall:
    """Stands in for pyplot's table of open figures while calls run."""

    def __init__(self, shared: OrderedDict[Any, Any]) -> None:
        self.shared = shared

    def _present(self) -> OrderedDict[Any, Any]:
        own = _own.get()
        return self.shared if own is None else own

    def __getattr__(self, name: str) -> Any:  # get, pop, values, move_to_end, ...
        return getattr(self._present(), name)

    def __getitem__(self, number: Any) -> Any:
        return self._present()[number]

    def __setitem__(self, number: Any, manager: Any) -> None:
        self._present()[number] = manager

    def __delitem__(self, number: Any) -> None:
        del self._present()[number]

    def __contains__(self, number: object) -> bool:
        return number in self._present()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._present())

    def __reversed__(self) -> Iterator[Any]:
        return iter(reversed(self._present()))

    def __len__(self) -> int:
        return len(self._present())


def watch() -> None:
    """Take note of pyplot's figures from now on. pyplot must be loaded."""
    parameters = sys.modules["matplotlib"].rcParams
    if _HOOK not in parameters["figure.hooks"]:
        parameters["figure.hooks"] = [*parameters["figure.hooks"], _HOOK]
    tables = sys.modules["matplotlib._pylab_helpers"].Gcf
    if not isinstance(tables.figs, _TableByCall):
        tables.figs = _TableByCall(tables.figs)


def unwatch() -> None:
    """Leave pyplot as it was found."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    parameters = sys.modules["matplotlib"].rcParams
    if _HOOK in parameters["figure.hooks"]:
        parameters["figure.hooks"] = [hook for hook in parameters["figure.hooks"] if hook != _HOOK]
    tables = sys.modules["matplotlib._pylab_helpers"].Gcf
    if isinstance(tables.figs, _TableByCall):
        tables.figs = tables.figs.shared


def take(made: list[Any], watched: bool) -> list[Any]:
    """Close those figures of a call that are still open, and return them. Not `watched`: pyplot was not loaded
    before, and all that are open are the call's."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or (watched and not made):
        return []
    taken = []
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if not watched or any(figure is own for own in made):
            taken.append(figure)
            pyplot.close(figure)
    return taken
