"""`%load_ext pi_notebook` and its opposite."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..agent._tracebacks import name_cells
from .toolset import forget_builtin_tools

COMPLETION = "pi_notebook.agent"
"""Identifier of the matcher that completes agent cells, as in `IPCompleter.disable_matchers`."""
_forget_cells: dict[int, Callable[[], None]] = {}


def load(shell: Any) -> None:
    """Register the magics; a second time changes nothing."""
    if _registered(shell) is not None:
        return
    from .magics import AgentMagics

    magics = AgentMagics(shell)
    _forget_cells[id(shell)] = name_cells(partial(_cell_name, shell))
    shell.register_magics(magics)
    if (completer := getattr(shell, "Completer", None)) is not None:
        from .completion import make_matcher

        completer.custom_matchers.append(make_matcher(magics))
    if magics not in shell.configurables:
        shell.configurables.append(magics)


def unload(shell: Any) -> None:
    """Take everything back."""
    magics = _registered(shell)
    if magics is None:
        return
    magics.close()
    if forget := _forget_cells.pop(id(shell), None):
        forget()
    forget_builtin_tools(shell)
    if (completer := getattr(shell, "Completer", None)) is not None:
        completer.custom_matchers[:] = [each for each in completer.custom_matchers if not _is_ours(each)]
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        manager.magics[kind].pop("agent", None)
    manager.registry.pop("AgentMagics", None)
    if magics in shell.configurables:
        shell.configurables.remove(magics)


def _cell_name(shell: Any, filename: str) -> str | None:
    """A cell as IPython's own tracebacks call it."""
    found = shell.compile.format_code_name(filename)
    return " ".join(found) if found else None


def _is_ours(matcher: Any) -> bool:
    return getattr(matcher, "matcher_identifier", "") == COMPLETION


def _registered(shell: Any) -> Any:
    return shell.magics_manager.registry.get("AgentMagics")
