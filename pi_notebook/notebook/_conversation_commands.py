"""The commands of `%agent` about the conversation."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.error import UsageError

from ..errors import PiNotebookError
from .conversation import CellTurn
from .listing import Listing

if TYPE_CHECKING:
    from .kept import KeptConversation
    from .magics import AgentMagics


def history(words: list[str], magics: AgentMagics) -> Listing:
    """The conversation: one row per cell, with its tokens and what it cost."""
    _take(words, "history")
    from ..agent.result import total_usage
    from ..ai.messages import Usage

    def spent(usage: Usage) -> list[str]:
        read = usage.input + usage.cache_read + usage.cache_write
        paid = usage.cost.total if usage.cost else None
        if not (paid or read or usage.output):  # nothing counted is not nothing paid
            paid = None
        return [f"{read:,} in, {usage.output:,} out", "–" if paid is None else f"${paid:.4f}"]

    rows = []
    usages = []
    for number, turn in enumerate(magics.conversation.turns, 1):
        usages += [message.usage for message in turn.messages if message.role != "user" and message.usage is not None]
        usage = total_usage(m.usage for m in turn.messages if m.role != "user" and m.usage is not None)
        calls = sum(message.role == "tool_result" for message in turn.messages)
        ended = turn.outcome or ("kernel ended" if turn.is_earlier else "running")
        rows.append([str(number), turn.label, _short(turn.prompt), ended, str(calls), *spent(usage)])
    if len(rows) > 1:
        rows.append(["", "", "all", "", "", *spent(total_usage(usages))])
    headings = ["#", "cell", "prompt", "ended", "calls", "tokens", "cost"]
    return Listing(headings, rows, "Nothing has been said yet.")


def show(words: list[str], magics: AgentMagics) -> None:
    """%agent show [N]: print the transcript of the last cell, or of number N of `%agent history`, here."""
    (word,) = _take(words, "show", 1)
    turns = magics.conversation.turns
    if not turns:
        raise UsageError("%agent show: nothing has been said yet.")
    numbers = [str(number) for number in range(1, len(turns) + 1)]
    if word and word not in numbers:
        raise UsageError(f"%agent show {word}: there are {len(turns)} cells, 1 to {len(turns)} in %agent history.")
    from IPython.display import display

    from .past_runs import view_of
    from .transcript import static_bundle

    turn = turns[int(word) - 1] if word else turns[-1]
    display(dict(static_bundle(view_of(turn))), raw=True)


def undo(words: list[str], magics: AgentMagics) -> str:
    """Take the last cell out of the conversation, and bring back what it had taken out if it was run again."""
    _take(words, "undo")
    _check_idle("undo", magics)
    undone = magics.conversation.undo()
    if undone is None:
        raise UsageError("%agent undo: the conversation is empty.")
    text = f"Took back cell {undone.taken.label}."
    if undone.restored:
        text += f" Brought back {_cells(undone.restored)}."
    return _with_notices(f"{text} The conversation holds {_count(magics.conversation.turns)} now.", magics)


def reset(words: list[str], magics: AgentMagics) -> str:
    """Begin an empty conversation; the old one stays on disk."""
    _take(words, "reset")
    _check_idle("reset", magics)
    conversation = magics.conversation
    kept = conversation.turns and conversation.log is not None and not conversation.log.problem
    conversation.reset()
    return "The conversation is empty now." + (" %agent resume brings the old one back." if kept else "")


def resume(words: list[str], magics: AgentMagics) -> str | Listing:
    """%agent resume [list | N | NAME | FILE.jsonl]: go on from a kept conversation; the latest if none is named."""
    (word,) = _take(words, "resume", 1)
    _check_idle("resume", magics)
    if word == "list":
        return _kept_listing(magics)
    if word.endswith(".jsonl"):
        path = Path(word).expanduser()
        beside = magics.place.file(magics.session).parent / path.name
        return _resume(magics, path if path.exists() else beside, None, "")
    if word and not word.isdecimal():
        return _resume_session(magics, word)
    conversation = magics.conversation
    if not word and conversation.is_resumed:
        return f"This conversation is resumed already: it holds {_count(conversation.turns)}."
    return _resume(magics, magics.place.file(magics.session), magics.session, word if word.isdecimal() else "")


def _resume_session(magics: AgentMagics, name: str) -> str:
    path = magics.place.file(name)
    if not path.exists():
        raise UsageError(f"%agent resume {name}: no session of this name is kept.{_others(magics)}")
    before, magics.session = magics.session, name
    try:
        return _resume(magics, path, name, "")
    except (PiNotebookError, UsageError):
        magics.session = before
        raise


def _resume(magics: AgentMagics, path: Path, session: str | None, number: str) -> str:
    conversation = magics.conversation
    log = conversation.log
    if conversation.turns and (log is None or log.problem):
        raise UsageError(
            f"%agent resume: {_count(conversation.turns)} of this conversation would be lost, for they are not kept on "
            "disk. Keep them with %agent export, then %agent reset."
        )
    is_own = log is not None and path == log.path
    if log is not None and is_own and path.exists():
        log.prepare()  # from now on what is read can be referred to
    kept, notices = _read(magics, path, session)
    if not kept:
        return f"Nothing to resume: no earlier conversation is kept in {path}.{_others(magics)}"
    if number and not 1 <= int(number) <= len(kept):
        raise UsageError(f"%agent resume {number}: there are {len(kept)}; %agent resume list shows them.")
    chosen = kept[int(number or 1) - 1]
    history = chosen.history()
    if conversation.turns:
        notices.insert(0, "What was said in this kernel so far stays on disk: %agent resume list.")
    conversation.resume(history, (chosen.id, len(chosen.records)) if is_own and log and not log.problem else None)
    last = history.path[-1]
    text = f"Resumed the conversation of {_when(last.time)}: {_count(history.path)}, the last {_short(last.prompt)!r}."
    if last.outcome is None:
        text += " The kernel ended during that one; calls that were open are marked as interrupted or as not run."
    return _with_notices("\n".join([text, *notices]), magics)


def _read(magics: AgentMagics, path: Path, session: str | None) -> tuple[list[KeptConversation], list[str]]:
    """The conversations of a file but the one that goes on here, the latest first."""
    from .kept import read_conversations

    if not path.exists():
        return [], []
    kept, notices = read_conversations(path, session)
    return [each for each in kept if each.id != magics.conversation.id], notices


def _kept_listing(magics: AgentMagics) -> Listing:
    path = magics.place.file(magics.session)
    kept, _ = _read(magics, path, magics.session)
    rows = []
    for number, each in enumerate(kept, 1):
        turns = each.history(with_messages=False).path
        rows.append([str(number), _when(each.time), _count(turns), _short(turns[0].prompt)])
    rows += [[other.name, "", "", "another notebook or session"] for other in magics.place.others(magics.session)]
    return Listing(["resume", "last used", "holds", "begins with"], rows, f"Nothing is kept in {path}.")


def export(words: list[str], magics: AgentMagics) -> str:
    """%agent export [FILE.md|FILE.ipynb]: write the conversation as Markdown or as a notebook."""
    (word,) = _take(words, "export", 1)
    from . import export as exporting

    turns = magics.conversation.turns
    if not turns:
        raise UsageError("%agent export: nothing has been said yet.")
    name = magics.place.name
    path = Path(word or exporting.default_name(name, magics.session)).expanduser()
    title = " ".join(["Conversation of", name, *([f"({magics.session})"] if magics.session else [])])
    exporting.export(turns, path, title)
    return f"Wrote {_count(turns)} to {path}."


def kept_in(magics: AgentMagics) -> str:
    """Where the conversation is kept, in words."""
    log = magics.conversation.log
    if log is None:
        return "in memory only (AgentMagics.keep is off)"
    return f"in memory only: {log.problem}" if log.problem else str(log.path)


def _take(words: list[str], name: str, most: int = 0) -> list[str]:
    """The words of a command, filled up with "" to `most`."""
    if len(words) > most:
        raise UsageError(
            f"%agent {name} takes {'one word at most' if most else 'nothing more'}; got {' '.join(words)!r}."
        )
    return words + [""] * (most - len(words))


def _check_idle(name: str, magics: AgentMagics) -> None:
    if magics.is_running:
        raise UsageError(f"%agent {name}: an agent is running; wait for its end or stop it.")


def _with_notices(text: str, magics: AgentMagics) -> str:
    return "\n".join([text, *magics.conversation.take_notices()])


def _others(magics: AgentMagics) -> str:
    names = [path.name for path in magics.place.others(magics.session)]
    return f" Kept beside it: {', '.join(names[:10])}." if names else ""


def _count(turns: list[CellTurn]) -> str:
    return "1 cell" if len(turns) == 1 else f"{len(turns)} cells"


def _cells(turns: tuple[CellTurn, ...]) -> str:
    return ("cell " if len(turns) == 1 else "cells ") + ", ".join(turn.label for turn in turns)


def _short(text: str, length: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[:length] + "..."


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")
