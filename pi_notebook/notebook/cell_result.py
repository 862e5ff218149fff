"""The value of an agent cell."""

from __future__ import annotations

import sys
from typing import Any

from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher

from ..agent.result import RunResult
from ..errors import PiNotebookError
from .bridge import running_cell, who_can_answer
from .output import behind_routers
from .transcript import render_text, static_bundle
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
        elif isinstance(hook := behind_routers(sys.displayhook), CapturingDisplayHook):
            # Whatever is said here, a capture keeps an output for the value: let it be the transcript, and the only one
            outputs, transcript = hook.outputs, static_bundle(self._view)
            outputs[:] = [output for output in outputs if output["data"] != transcript]
            raise NotImplementedError  # IPython goes on to the next way of showing it

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return static_bundle(self._view)

    def show(self) -> None:
        """Print the transcript, here."""
        from IPython.display import display

        display(static_bundle(self._view), raw=True)

    def __reduce__(self) -> Any:
        """Copies and pickles hold the result without its view."""
        return RunResult, (self.messages, self.tool_calls, self.stopped_by)

    def __repr__(self) -> str:
        return render_text(self._view)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def in_one_line(error: BaseException, *, is_told: bool) -> BaseException:
    """`error`, told to show itself in IPython without a traceback, if it is what became of a run and no bug.

    A traceback would only lead into this package.

    Args:
        is_told: The transcript stands right above and has said what happened: the line does not say it again.
    """
    if isinstance(error, PiNotebookError | KeyboardInterrupt):
        said = "the agent was interrupted."
        if isinstance(error, PiNotebookError):
            said = "the run failed; its transcript above says why." if is_told else str(error)
        line = f"{type(error).__name__}: {' '.join(said.split())}"
        vars(error)["_render_traceback_"] = lambda: [line]  # IPython asks for it
    return error


def is_transcript_seen(shell: Any) -> bool:
    """Whether what a run shows stands before a person: not in a capture or a file, nor in a notebook that a program
    runs, which then reports the error alone."""
    if isinstance(behind_routers(shell.display_pub), CapturingDisplayPublisher):
        return False
    answerer = who_can_answer(shell)
    return answerer == "front end" or (answerer == "terminal" and sys.stdout.isatty())


def _execution(shell: Any) -> tuple[str, int]:
    """Which execution of a cell this is."""
    return running_cell(shell)[0], shell.execution_count
