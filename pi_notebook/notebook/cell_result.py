"""The value of an agent cell."""

from __future__ import annotations

from typing import Any

from ..agent.result import RunResult
from ..errors import PiNotebookError
from .bridge import running_cell
from .transcript import render_text
from .view import RunView


class CellResult(RunResult):
    """A `RunResult` that shows itself as the run's transcript.

    In the cell that ran it the transcript stands already: there it shows nothing, as the cell's value or otherwise.
    """

    def __init__(self, result: RunResult, view: RunView, shell: Any) -> None:
        super().__init__(result.messages, result.tool_calls, result.stopped_by)
        self._view = view
        self._shell = shell
        self._made_in = _execution(shell)

    def _ipython_display_(self) -> None:
        if _execution(self._shell) != self._made_in:
            self.show()

    def show(self) -> None:
        """Print the transcript, here."""
        from IPython.display import display

        from .transcript import static_bundle

        display(static_bundle(self._view), raw=True)

    def __reduce__(self) -> Any:
        """Copies and pickles hold the result without its view."""
        return RunResult, (self.messages, self.tool_calls, self.stopped_by)

    def __repr__(self) -> str:
        return render_text(self._view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def in_one_line(error: BaseException) -> BaseException:
    """`error`, told to show itself in IPython without a traceback, if it is what became of a run and no bug.

    The card has said what happened; a traceback would only lead into this package.
    """
    if isinstance(error, PiNotebookError | KeyboardInterrupt):
        said = str(error) if isinstance(error, PiNotebookError) else "the agent was interrupted."
        line = f"{type(error).__name__}: {' '.join(said.split())}"
        vars(error)["_render_traceback_"] = lambda: [line]  # IPython asks for it
    return error


def _execution(shell: Any) -> tuple[str, int]:
    """Which execution of a cell this is."""
    return running_cell(shell)[0], shell.execution_count
