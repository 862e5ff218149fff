"""`%load_ext pi_notebook` and its opposite."""

from __future__ import annotations

from typing import Any


def load(shell: Any) -> None:
    """Register the magics; a second time changes nothing."""
    if _registered(shell) is not None:
        return
    from .magics import AgentMagics

    magics = AgentMagics(shell)
    shell.register_magics(magics)
    if magics not in shell.configurables:
        shell.configurables.append(magics)


def unload(shell: Any) -> None:
    """Take everything back."""
    magics = _registered(shell)
    if magics is None:
        return
    magics.close()
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        manager.magics[kind].pop("agent", None)
    manager.registry.pop("AgentMagics", None)
    if magics in shell.configurables:
        shell.configurables.remove(magics)


def _registered(shell: Any) -> Any:
    return shell.magics_manager.registry.get("AgentMagics")
