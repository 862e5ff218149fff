"""The head of a card: model, turns, tokens, cost, time, and what is going on. And the notes under it."""

from __future__ import annotations

from ._style import part
from .markup import escape, visible, visible_html
from .view import RunView

_COLOURS = {"done": "green", "stopped": "grey", "interrupted": "grey", "failed": "red", "retrying": "amber"}
_SYMBOLS = {"done": "✓", "stopped": "■", "interrupted": "■", "failed": "✕"}


def facts(view: RunView) -> list[str]:
    """Turns, tokens, cost (a dash where the price is unknown) and time, as plain text each."""
    turn = max(view.turn, 1)
    turns = f"turn {turn}" if not view.outcome else f"{turn} turn{'s' if turn > 1 else ''}"
    if view.max_turns and not view.outcome:
        turns += f" of {view.max_turns}"
    texts = [turns]
    if view.tokens_in or view.tokens_out:
        texts.append(f"{_count(view.tokens_in)} in, {_count(view.tokens_out)} out")
        texts.append("cost –" if view.cost is None else f"${view.cost:.4f}" if view.cost < 1 else f"${view.cost:.2f}")
    seconds = view.elapsed
    time = f"{int(seconds) // 60} min {int(seconds) % 60:02d} s" if seconds >= 120 else None
    time = time or (f"{seconds:.1f} s" if view.outcome else f"{int(seconds)} s")
    return [*texts, time]


def _count(tokens: int) -> str:
    return f"{tokens}" if tokens < 1000 else f"{tokens / 1000:.1f}k" if tokens < 1_000_000 else f"{tokens / 1e6:.1f}M"


def head_line(view: RunView, *, model: bool = True) -> str:
    """The head as one line of plain text."""
    return " · ".join([*([visible(view.model)] if model else []), *facts(view), view.status])


def finished_head_html(view: RunView) -> str:
    """The head with a bar of its own, for the transcript."""
    return f"<div{part('head', 'bar')}>{head_html(view)}</div>"


def head_html(view: RunView) -> str:
    """The pieces of the head, to stand in a row."""
    status = view.status
    word = status.split(" ")[0]
    colour = _COLOURS.get(word, "amber" if word == "waiting" else "blue")
    symbol = _SYMBOLS.get(word, "◆" if word == "waiting" else "●")
    texts = "".join(f"<span{part('fact')}>{escape(text)}</span>" for text in facts(view))
    tail = escape(f"{symbol} {status}")
    model = f'<span{part("model")} dir="auto">{visible_html(view.model[:200])}</span>'
    return f"{model}{texts}<span{part('push', colour)}>{tail}</span>"


def notes_html(view: RunView) -> str:
    """The word about the model, what was put into the prompt, and warnings."""
    pieces = []
    if view.model_notice:
        pieces.append(_note(view.model_notice, "grey"))
    if view.inserted:
        lines = "".join(f"<div>{visible_html(text[:500])}</div>" for text in view.inserted[:50])
        pieces.append(f'<div{part("note", "grey")} dir="auto">In the prompt: {lines}</div>')
    pieces += [_note(text, "amber") for text in view.warnings]
    return "".join(pieces)


def _note(text: str, colour: str) -> str:
    return f'<div{part("note", colour)} dir="auto">{visible_html(text[:2_000])}</div>'
