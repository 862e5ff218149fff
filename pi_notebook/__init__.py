"""An AI agent that lives in a Jupyter cell.

`%load_ext pi_notebook` brings the `%%agent` cell; `@tool` makes a function something that a model can call. Names below
are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agent._variable_types import NotebookVariable as NotebookVariable
    from .agent.agent import Agent as Agent
    from .agent.function_tool import tool as tool
    from .agent.hooks import Decision as Decision
    from .agent.hooks import Question as Question
    from .agent.result import RunResult as RunResult
    from .agent.tool import Tool as Tool
    from .agent.tool import ToolContext as ToolContext
    from .agent.tool import ToolResult as ToolResult
    from .ai.apis.scripted import call as call
    from .ai.apis.scripted import scripted as scripted
    from .ai.apis.scripted import thinking as thinking
    from .ai.messages import ImageContent as ImageContent
    from .ai.messages import TextContent as TextContent
    from .ai.model import Model as Model
    from .errors import PiNotebookError as PiNotebookError
    from .errors import ToolError as ToolError
    from .notebook.approval import Rules as Rules

__version__ = "0.1.0"

_HOMES = {
    "Agent": ".agent.agent",
    "Decision": ".agent.hooks",
    "ImageContent": ".ai.messages",
    "Model": ".ai.model",
    "NotebookVariable": ".agent._variable_types",
    "PiNotebookError": ".errors",
    "Question": ".agent.hooks",
    "Rules": ".notebook.approval",
    "RunResult": ".agent.result",
    "TextContent": ".ai.messages",
    "Tool": ".agent.tool",
    "ToolContext": ".agent.tool",
    "ToolError": ".errors",
    "ToolResult": ".agent.tool",
    "call": ".ai.apis.scripted",
    "scripted": ".ai.apis.scripted",
    "thinking": ".ai.apis.scripted",
    "tool": ".agent.function_tool",
}
__all__ = [*_HOMES, "load_ipython_extension", "unload_ipython_extension"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext pi_notebook`; twice is harmless."""
    from .notebook.extension import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext pi_notebook`: leaves no trace."""
    from .notebook.extension import unload

    unload(ipython)
