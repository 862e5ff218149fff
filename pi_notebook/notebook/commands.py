"""What `%agent NAME` does: each command is a function of its words and the magics; what it returns is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ._conversation_commands import export, history, kept_in, reset, resume, show, undo
from .listing import Listing, Words

if TYPE_CHECKING:
    from .magics import AgentMagics

Command = Callable[[list[str], "AgentMagics"], Any]
COMMANDS: dict[str, Command] = {}


def run_command(name: str, words: list[str], magics: AgentMagics) -> Any:
    """Run the command; raises UsageError for words it does not take."""
    answer = COMMANDS[name](words, magics)
    return Words(answer) if isinstance(answer, str) else answer


def _command(function: Command) -> Command:
    COMMANDS[function.__name__] = function
    return function


def _no_words(name: str, words: list[str]) -> None:
    if words:
        raise UsageError(f"%agent {name} takes nothing more; got {' '.join(words)!r}.")


@_command
def tools(words: list[str], magics: AgentMagics) -> Listing:
    """The tools that %%agent offers: name, signature, how they run, whether they ask, where defined."""
    _no_words("tools", words)
    rows = [
        [
            tool.name,
            str(getattr(tool, "signature", "")),
            tool.execution_mode or "",
            _approval(tool),
            getattr(tool, "where", "built in"),
        ]
        for tool in magics.available_tools()
    ]
    return Listing(
        ["tool", "signature", "mode", "approval", "defined in"], rows, "No tools yet: decorate one with @tool."
    )


def _approval(tool: Any) -> str:
    return ("asks" if tool.approval else "") if isinstance(tool.approval, bool) else "asks if its rule says so"


@_command
def models(words: list[str], magics: AgentMagics) -> Listing:
    """The models that could be used now, and what local servers serve."""
    _no_words("models", words)
    from ..ai.discovery import usable_models

    rows = [[entry.name, entry.reason + (" (default)" if entry.default else "")] for entry in usable_models()]
    return Listing(["model", "usable because"], rows)


@_command
def key(words: list[str], magics: AgentMagics) -> str:
    """%agent key PROVIDER: type a key, kept in memory only."""
    from getpass import getpass

    from ..ai.keys import set_key
    from ..ai.providers import PROVIDERS

    if len(words) != 1 or words[0] not in PROVIDERS:
        raise UsageError(f"%agent key PROVIDER takes one of {', '.join(PROVIDERS)}.")
    set_key(words[0], getpass(f"Key for {words[0]} (kept in memory only): "))
    return f"Key for {words[0]} is set until this kernel ends."


for _each in (history, show, undo, reset, resume, export):
    _command(_each)


@_command
def status(words: list[str], magics: AgentMagics) -> Listing:
    """What %%agent would use now."""
    _no_words("status", words)
    conversation = magics.conversation
    rows = [
        ["model", magics.model or "(none configured: chosen when a cell runs)"],
        ["tools", ", ".join(tool.name for tool in magics.available_tools()) or "none"],
        ["approve", magics.approve],
        ["conversation", f"{magics.session or 'this notebook'}: {len(conversation.turns)} cells"],
        ["kept", kept_in(magics)],
    ]
    return Listing(["", ""], rows)


@_command
def help(words: list[str], magics: AgentMagics) -> Listing:
    """These commands."""
    rows = [[f"%agent {name}", (command.__doc__ or "").strip()] for name, command in COMMANDS.items()]
    return Listing(
        ["command", "what it does"], [["%%agent", "Give the cell's text to an agent. Options: %%agent?"], *rows]
    )
