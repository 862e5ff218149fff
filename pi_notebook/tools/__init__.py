"""Built-in tools: read, bash, edit, write, grep, find, ls, python, variables.

    Agent(model=model, tools=builtin(root="project"))          # all of them, file tools confined to the folder
    Agent(model=model, tools=builtin("read", "grep"))           # some of them, in the present folder
    Agent(model=model, tools=[tools.read, tools.grep])          # the same, by name

`bash` and `python` are not confined; approval is their guard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..agent.tool import Tool
    from ._python import NamespaceRunner, Outcome, Runner

    bash: Tool
    edit: Tool
    find: Tool
    grep: Tool
    ls: Tool
    python: Tool
    read: Tool
    variables: Tool
    write: Tool

NAMES = ("read", "bash", "edit", "write", "grep", "find", "ls", "python", "variables")

__all__ = ["NAMES", "NamespaceRunner", "Outcome", "Runner", "builtin", *NAMES]

_by_name: dict[str, Tool] = {}


def builtin(
    *names: str,
    root: str | os.PathLike[str] | None = None,
    namespace: dict[str, Any] | None = None,
    runner: Runner | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Tool]:
    """The built-in tools, or those of them that are named, in that order.

    Args:
        root: Folder that read, edit, write, grep, find and ls may not leave, and where bash starts; the present
            folder if None. Resolved once, now.
        namespace: Where python runs and variables looks; a new dict if None.
        runner: Runs the code of python in that namespace; if None it is compiled and executed there.
        environment: Variables of bash's commands; if None this process's own without the keys of model providers.

    Raises:
        ToolDefinitionError: A name is unknown, or `root` is not a folder.
    """
    from ..errors import ToolDefinitionError
    from ._bash import bash_tool
    from ._edit import edit_tool
    from ._find import find_tool
    from ._grep import grep_tool
    from ._ls import ls_tool
    from ._paths import Workspace
    from ._python import python_tool
    from ._read import read_tool
    from ._variables import variables_tool
    from ._write import write_tool

    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ToolDefinitionError(f"There is no built-in tool {unknown[0]!r}; there are: {', '.join(NAMES)}.")
    workspace = Workspace(root)
    variables_in = {"__name__": "__main__"} if namespace is None else namespace
    makers = {
        "read": lambda: read_tool(workspace),
        "bash": lambda: bash_tool(workspace, environment),
        "edit": lambda: edit_tool(workspace),
        "write": lambda: write_tool(workspace),
        "grep": lambda: grep_tool(workspace),
        "find": lambda: find_tool(workspace),
        "ls": lambda: ls_tool(workspace),
        "python": lambda: python_tool(variables_in, runner),
        "variables": lambda: variables_tool(variables_in),
    }
    return [makers[name]() for name in names or NAMES]


def __getattr__(name: str) -> Any:
    if name in NAMES:
        if not _by_name:
            _by_name.update({tool.name: tool for tool in builtin()})
        return _by_name[name]
    if name in ("NamespaceRunner", "Outcome", "Runner"):
        from . import _python

        return getattr(_python, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
