"""What `%agent NAME` does: each command is a function of its words and the magics; what it returns is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from .listing import Listing

if TYPE_CHECKING:
    from .magics import AgentMagics

Command = Callable[[list[str], "AgentMagics"], Any]
COMMANDS: dict[str, Command] = {}


def run_command(name: str, words: list[str], magics: AgentMagics) -> Any:
    """Run the command; raises UsageError for words it does not take."""
    return COMMANDS[name](words, magics)


def _command(function: Command) -> Command:
    COMMANDS[function.__name__.strip("_")] = function
    return function


def _no_words(name: str, words: list[str]) -> None:
    if words:
        raise UsageError(f"%agent {name} takes nothing more; got {' '.join(words)!r}.")


@_command
def tools(words: list[str], magics: AgentMagics) -> Listing:
    """The tools that %%agent offers: name, signature, how they run, whether they ask, where defined."""
    _no_words("tools", words)
    rows = [
        [tool.name, str(getattr(tool, "signature", "")), tool.execution_mode or "", _approval(tool), getattr(tool, "where", "built in")]
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


@_command
def history(words: list[str], magics: AgentMagics) -> Listing:
    """The conversation: one row per cell, with its tokens."""
    _no_words("history", words)
    from ..agent.result import total_usage

    rows = []
    for turn in magics.conversation.turns:
        usage = total_usage(m.usage for m in turn.messages if m.role == "assistant")
        first = " ".join(turn.prompt.split())
        calls = sum(m.role == "tool_result" for m in turn.messages)
        rows.append(
            [
                f"[{turn.execution_count}]",
                first[:80] + ("..." if len(first) > 80 else ""),
                str(calls),
                f"{usage.input + usage.cache_read + usage.cache_write:,} in, {usage.output:,} out",
            ]
        )
    return Listing(["cell", "prompt", "calls", "tokens"], rows, "Nothing has been said yet.")


@_command
def show(words: list[str], magics: AgentMagics) -> None:
    """Print the transcript of the last run again, here."""
    _no_words("show", words)
    if magics.last_run is None:
        raise UsageError("%agent show: no agent has run in this kernel yet.")
    from IPython.display import display

    from .transcript import static_bundle

    display(static_bundle(magics.last_run.view), raw=True)


@_command
def undo(words: list[str], magics: AgentMagics) -> str:
    """Take the last cell out of the conversation, or bring back what running a cell again took out."""
    _no_words("undo", words)
    turn = magics.conversation.undo()
    if turn is None:
        raise UsageError("%agent undo: the conversation is empty.")
    left = len(magics.conversation.turns)
    cells = "cell" if left == 1 else "cells"
    return f"Took back cell [{turn.execution_count}]. The conversation holds {left} {cells} now."


@_command
def reset(words: list[str], magics: AgentMagics) -> str:
    """Forget the conversation."""
    _no_words("reset", words)
    magics.conversation.reset()
    return "The conversation is empty now."


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
    ]
    return Listing(["", ""], rows)


@_command
def help(words: list[str], magics: AgentMagics) -> Listing:
    """These commands."""
    rows = [[f"%agent {name}", (command.__doc__ or "").strip()] for name, command in COMMANDS.items()]
    return Listing(
        ["command", "what it does"], [["%%agent", "Give the cell's text to an agent. Options: %%agent?"], *rows]
    )
