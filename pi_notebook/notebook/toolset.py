"""Which tools a cell offers: those of the notebook, the built-in ones, or an exact list."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from ..agent.registry import registry
from ..agent.tool import Tool

SETS = ("builtin", "notebook", "none")


def notebook_tools(shell: Any) -> list[Tool]:
    """All tools decorated in this notebook whose functions still exist."""
    return list(registry.tools(shell.user_ns))


_builtin: dict[tuple[int, str], list[Tool]] = {}


def builtin_tools(shell: Any, root: str | None) -> list[Tool]:
    """The built-in set, working in `root` (default: the folder of the notebook) and on the shell's namespace.

    The same tools each time, so that what a person allowed for good stays allowed; another folder has tools of its own.
    """
    from ..tools import NamespaceRunner, builtin

    key = (id(shell), str(Path(root or ".").resolve()))
    if key not in _builtin:
        runner = NamespaceRunner(shell.user_ns, shell.transform_cell)
        _builtin[key] = builtin(root=root, namespace=shell.user_ns, runner=runner)
    return _builtin[key]


def forget_builtin_tools(shell: Any) -> None:
    """Let go of the shell's built-in tools."""
    for key in [key for key in _builtin if key[0] == id(shell)]:
        del _builtin[key]


def choose_tools(wanted: str, shell: Any, root: str | None) -> list[Tool]:
    """The tools that `--tools` names, each once, in that order; all of the notebook if it is empty.

    Raises:
        UsageError: For a name that is none, with those there are.
    """
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if not names:
        return notebook_tools(shell)
    chosen: dict[str, Tool] = {}
    here = {tool.name: tool for tool in notebook_tools(shell)}
    for name in names:
        if name == "none":
            continue
        if name == "notebook":
            chosen.update(here)
        elif name in here:
            chosen[name] = here[name]
        elif isinstance(value := shell.user_ns.get(name), Tool):
            chosen[value.name] = value
        else:
            builtin = {tool.name: tool for tool in builtin_tools(shell, root)}
            if name == "builtin":
                chosen.update(builtin)
            elif name in builtin:
                chosen[name] = builtin[name]
            else:
                raise UsageError(_unknown(name, [*here, *builtin, *SETS]))
    return list(chosen.values())


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"--tools: there is no tool {name!r}.{hint} There are {', '.join(known)}."
