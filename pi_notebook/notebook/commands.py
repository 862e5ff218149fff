"""What `%agent NAME` does: each command is a function of its words and the magics; what it returns is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from ..agent.result import total_usage
from ..agent.tool import Tool
from ..ai.keys import TYPED
from ..ai.model import Model
from ._conversation_commands import export, history, kept_in, reset, resume, show, undo
from .listing import Listing, Words
from .toolset import choose_tools

if TYPE_CHECKING:
    from .magics import AgentMagics

Command = Callable[[list[str], "AgentMagics"], Any]
COMMANDS: dict[str, Command] = {}


def run_command(name: str, words: list[str], magics: AgentMagics) -> Any:
    """Run the command; raises UsageError for words it does not take."""
    answer = COMMANDS[name](words, magics)
    return Words(answer) if isinstance(answer, str) else answer


def command_help() -> str:
    """What `%agent?` shows."""
    commands = "\n".join(f"  {usage}\n      {text}" for usage, text in map(_usage, COMMANDS))
    return f"Commands about the agent; to ask it something, write %%agent and the question below it.\n\n{commands}\n"


def _usage(name: str) -> tuple[str, str]:
    """`%agent NAME` with the words it takes, and what it does: a docstring may begin with the former."""
    text = (COMMANDS[name].__doc__ or "").strip()
    usage, colon, rest = text.partition(": ")
    return (usage, rest[:1].upper() + rest[1:]) if colon and usage.startswith("%agent ") else (f"%agent {name}", text)


def _command(function: Command) -> Command:
    COMMANDS[function.__name__] = function
    return function


def _no_words(name: str, words: list[str]) -> None:
    if words:
        raise UsageError(f"%agent {name} takes nothing more; got {' '.join(words)!r}.")


@_command
def tools(words: list[str], magics: AgentMagics) -> Listing:
    """%agent tools [NAMES]: what %%agent offers, or what --tools NAMES would: signature, where it runs, if it asks."""
    chosen = magics.available_tools() if not words else choose_tools(",".join(words), magics.shell, magics.root or None)
    rows = [
        [tool.name, _signature(tool), _runs(tool), _approval(tool), getattr(tool, "where", "built in")]
        for tool in chosen
    ]
    return Listing(
        ["tool", "signature", "runs on", "approval", "defined in"],
        rows,
        "No tools yet: decorate a function with @tool, or see %agent tools builtin.",
    )


def _signature(tool: Tool) -> str:
    if (signature := getattr(tool, "signature", None)) is not None:
        return str(signature)
    required = tool.schema.get("required", ())
    return f"({', '.join(n if n in required else f'{n}=...' for n in tool.schema.get('properties', {}))})"


_PLACES = {"loop": "the agent's loop", "plain": "the main thread", "worker": "a worker thread", "executor": "executor"}


def _runs(tool: Tool) -> str:
    place = _PLACES.get(tool.runs_on, tool.runs_on)
    return f"{place}, {tool.execution_mode}" if tool.execution_mode else place


def _approval(tool: Tool) -> str:
    return ("asks" if tool.approval else "") if isinstance(tool.approval, bool) else "asks if its rule says so"


@_command
def models(words: list[str], magics: AgentMagics) -> Listing:
    """The models that could be used now, and what local servers serve."""
    _no_words("models", words)
    from ..ai.discovery import usable_models

    rows = [[entry.name, entry.reason + (" (default)" if entry.default else "")] for entry in usable_models()]
    held = [(name, value) for name, value in list(magics.shell.user_ns.items()) if isinstance(value, Model)]
    rows += [[name, f"a variable of this notebook: {value.label}"] for name, value in held if name[0] != "_"]
    return Listing(["model", "usable because"], rows)


@_command
def key(words: list[str], magics: AgentMagics) -> str:
    """%agent key PROVIDER: type a key, kept in memory only; nothing typed forgets it."""
    from ..ai.keys import find_key, set_key
    from ..ai.providers import PROVIDERS

    with_keys = [name for name, provider in PROVIDERS.items() if provider.key_names]
    if len(words) != 1 or words[0] not in with_keys:  # a word too many may be the key: it is not repeated
        raise UsageError(
            f"%agent key PROVIDER takes one of {', '.join(with_keys)}, and nothing more: "
            "the key is typed where it asks, so that it stands in no cell."
        )
    name = words[0]
    set_key(name, typed := _ask_for_key(name))
    if not typed.strip():
        return f"The key for {name} that was typed here is forgotten."
    found = find_key(name, PROVIDERS[name].key_names)
    if found is not None and found.source != TYPED:
        take_away = f"keyring del pi-notebook {name}" if found.source == "keyring" else f"unset {found.source}"
        return f"Kept, but {found.source} comes first and holds another key for {name}. To use this one: {take_away}."
    return f"Key for {name} is set until this kernel ends."


def _ask_for_key(name: str) -> str:
    from getpass import getpass

    try:
        return getpass(f"Key for {name} (kept in memory only): ")
    except KeyboardInterrupt:
        raise
    except Exception:  # ipykernel has an error of its own for a front end that takes no input
        raise UsageError(f"%agent key {name}: nobody can type here; set the key's environment variable.") from None


for _each in (history, show, undo, reset, resume, export):
    _command(_each)


@_command
def status(words: list[str], magics: AgentMagics) -> Listing:
    """What %%agent would use now."""
    _no_words("status", words)
    conversation = magics.conversation
    usage = total_usage(m.usage for turn in conversation.turns for m in turn.messages if m.role == "assistant")
    cost = "" if not usage.cost or not usage.cost.total else f", ${usage.cost.total:.4f}"
    limits = [f"{magics.max_turns} turns"] * bool(magics.max_turns) + [f"${magics.max_cost:g}"] * bool(magics.max_cost)
    rows = [
        ["agent", "runs" if magics.is_running else "idle"],
        ["model", _model_in_use(magics)],
        ["thinking", magics.thinking],
        ["tools", ", ".join(tool.name for tool in magics.available_tools()) or "none"],
        ["approve", str(magics.approve)],
        ["rules", str(magics.rules or "none")],
        ["always allowed", ", ".join(sorted({tool.name for tool, _ in magics.always})) or "none"],
        ["limits of a run", ", ".join(limits) or "none"],
        ["conversation", f"{magics.session or 'this notebook'}: {len(conversation.turns)} cells"],
        ["tokens", f"{usage.total_tokens:,}{cost}"],
        ["kept", kept_in(magics)],
    ]
    return Listing(["", ""], rows)


def _model_in_use(magics: AgentMagics) -> str:
    from ..ai.discovery import default_model
    from ..ai.providers import PROVIDERS, has_key

    if name := magics.model_name():
        return name
    model = default_model()
    provider = PROVIDERS.get(model.provider)
    if provider is None:
        return f"{model.label} (none is configured)"
    key = has_key(provider)
    return f"{model.label} (by its key: {key.source})" if key else f"{model.label} (by its server: {model.base_url})"


@_command
def help(words: list[str], magics: AgentMagics) -> Listing:
    """%agent help [COMMAND]: these commands."""
    if len(words) > 1 or not set(words) <= set(COMMANDS):
        raise UsageError(f"%agent help takes one of {', '.join(COMMANDS)}, or nothing.")
    rows = [list(_usage(name)) for name in words or COMMANDS]
    if not words:
        rows.insert(0, ["%%agent", "Give the cell's text to an agent. Options: %%agent?"])
    return Listing(["command", "what it does"], rows)
