"""Every error this package raises on purpose, in one small tree.

`PiNotebookError` is the root: catch it to catch them all. Texts say what was wrong, where, and what to do;
they never hold a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class PiNotebookError(Exception):
    """Root of all errors of this package."""


class ModelError(PiNotebookError):
    """A model cannot be used: unknown name, missing key, unusable schema, used-up script."""


class ProviderError(ModelError):
    """A request to a provider failed, after retries where they were allowed.

    Args:
        message: Provider's text, and what to do about it. Holds no key.
        status: HTTP status, if there was a reply.
        request_id: The provider's id of the request, if it named one.
    """

    def __init__(self, message: str, *, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id


class ContextOverflowError(ProviderError):
    """The transcript is larger than the model's context window."""


class ToolDefinitionError(PiNotebookError):
    """A function or schema cannot become a tool. Raised where the tool is defined, in one line."""


class ToolError(PiNotebookError):
    """Raise this in a tool to give the model exactly this text, with no exception type around it."""


class ToolArgumentsError(ToolError):
    """Arguments of a tool call do not fit the tool's parameters.

    Args:
        message: Made for a model that has to mend its call: every path, what was expected, what came.
        errors: One `(path, text)` per error; the path is dotted, `root` for the top.
        arguments: What was received.
    """

    def __init__(self, message: str, errors: Sequence[tuple[str, str]] = (), arguments: Any = None) -> None:
        super().__init__(message)
        self.errors = list(errors)
        self.arguments = arguments


class AgentError(PiNotebookError):
    """The agent was asked for something its state does not allow (busy, nothing to continue from)."""


class RunError(PiNotebookError):
    """A run ended by a provider's or a guard's error; the transcript holds all that came before."""
