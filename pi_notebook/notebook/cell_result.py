"""The value of an agent cell."""

from __future__ import annotations

from typing import Any

from ..agent.result import RunResult
from .transcript import render_text
from .view import RunView


class CellResult(RunResult):
    """A `RunResult` that shows itself as the run's transcript.

    It is the value of its cell (`_`, `Out[n]`), where the transcript stands already: as that value it shows nothing.
    """

    def __init__(self, result: RunResult, view: RunView) -> None:
        super().__init__(result.messages, result.tool_calls, result.stopped_by)
        self._view = view
        self._is_cell_value = True

    def _ipython_display_(self) -> None:
        if self._is_cell_value:
            self._is_cell_value = False
            return
        self.show()

    def show(self) -> None:
        """Print the transcript again."""
        from IPython.display import display

        from .transcript import static_bundle

        display(static_bundle(self._view), raw=True)

    def __repr__(self) -> str:
        return render_text(self._view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))
