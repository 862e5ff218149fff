"""One tool call as HTML: its line, its arguments, its output. The same for the live card and the transcript."""

from __future__ import annotations

import math
import re
import time
from typing import Any

from ..agent._tracebacks import short_traceback
from ..ai.messages import ImageContent
from ..errors import ToolError
from ._arguments import arguments_html, arguments_line, change_html, size_of
from ._items import Row, State
from ._style import part
from .markup import clean_table, code_html, escape, plain, styled_table, visible, visible_html

SYMBOLS: dict[State, str] = {
    "queued": "○",
    "waiting for you": "◆",
    "running": "◐",
    "done": "✓",
    "failed": "✕",
    "blocked": "⊘",
    "stopped": "■",
}
_COLOURS: dict[State, str] = {
    "queued": "grey",
    "waiting for you": "amber",
    "running": "blue",
    "done": "green",
    "failed": "red",
    "blocked": "amber",
    "stopped": "grey",
}
SHORT_RESULT = 100
_OPEN_LINES = 6
_SHOWN_RESULT = 20_000
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_IMAGE = 6_000_000
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
_EDGES = {"grey": (), "blue": ("edge-blue",), "green": ("edge-green",), "amber": ("edge-amber",), "red": ("edge-red",)}


def row_html(row: Row, now: float) -> str:
    """The whole row, for where it no longer changes."""
    return f"<div{row_part(row)}>{line_html(row, now)}{folded_arguments_html(row)}{output_html(row)}</div>"


def row_part(row: Row) -> str:
    return part("row", *_EDGES[_COLOURS[row.state]])


def line_html(row: Row, now: float) -> str:
    """Symbol, label, short arguments, short result, state in words, seconds."""
    colour = _COLOURS[row.state]
    shown = row.shown_arguments
    short = arguments_line(shown)[0] if shown or not row.writing else ""
    if row.writing and row.raw_length > 2_000:
        short += f" … {size_of(row.raw_length)} so far"
    seconds = row.seconds(now)
    words: str = "writing the call" if row.writing else row.state
    if seconds is not None:
        words += f" · {seconds_text(seconds, row.final)}"
    state = f"<span{part('state', colour)}>{words}</span>"
    pieces = [
        f"<span{part('symbol', colour)}>{SYMBOLS[row.state]}</span>",
        f"<span{part('label')}>{visible_html(row.label[:100])}</span>",
        f"<span{part('inline')}><bdi>{escape(short)}</bdi></span>" if short else "",
    ]
    result = short_result(row)
    if result:
        tone = ("value",) if row.state == "done" else ("value", "red" if row.state == "failed" else "muted")
        pieces.append(f"<span{part(*tone)}>→ <bdi>{visible_html(result)}</bdi></span>")
    # What floats comes first, so that the rest flows around it
    return f"<div{part('line')}>{state}{' '.join(pieces)}</div>"


def seconds_text(seconds: float, final: bool = True) -> str:
    """`0.1 s` when final, whole seconds while it runs, `3 min 05 s` from two minutes on."""
    if seconds >= 120:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{seconds:.1f} s" if final else f"{int(seconds)} s"


def short_result(row: Row) -> str:
    """A result that fits into the line; "" if it needs room of its own."""
    result = row.result
    if result is None or row.table or any(block.type != "text" for block in result.content) or _diff_of(row):
        return ""
    text = plain(result.text).strip()
    return text if len(text) <= SHORT_RESULT and "\n" not in text and not _traceback_of(row) else ""


def folded_arguments_html(row: Row) -> str:
    """What the line cannot hold of the arguments, folded; a change by edit, in sight; who decided."""
    pieces = []
    if not row.writing and row.state != "waiting for you" and not arguments_line(row.arguments)[1]:
        pieces.append(fold("arguments", arguments_html(row.arguments)))
    decision = row.decision
    if decision is not None:
        pieces.append(f"<div{part('small', 'muted')}>{escape(decision_text(row))}</div>")
        if decision.kind == "edit" and row.question is not None:
            pieces.append(change_html(row.question.arguments, decision.arguments))
    return "".join(pieces)


def decision_text(row: Row) -> str:
    """`approved by you at 14:03:21`."""
    decision = row.decision
    if decision is None:
        return ""
    did = {"approve": "approved", "block": "blocked", "edit": "edited and approved", "always": "always allowed"}
    at = time.strftime("%H:%M:%S", time.localtime(decision.at))
    by = "for want of anybody to ask" if decision.by == "nobody there" else f"by {visible(decision.by[:100])}"
    text = f"{did[decision.kind]} {by} at {at}"
    told = row.result is not None and decision.reason in row.result.text
    return f"{text}: {visible(decision.reason[:500])}" if decision.reason and not told else text


def output_html(row: Row) -> str:
    """Progress, what it wrote, what it returned; "" if there is nothing."""
    pieces = []
    if not row.final:
        pieces.append(_progress_html(row))
    written = plain(row.console.text).rstrip() if row.console else ""
    if written and not (row.final and row.result is not None and plain(row.result.text).strip() == written.strip()):
        pieces.append(_console_html(row, written))
    if row.partial is not None:
        pieces.append(_blocks_html(row.partial.content, "") + _displayed_html(row.partial.details))
    if row.result is not None and not short_result(row):
        pieces.append(_result_html(row))
    if row.result is not None and row.result.displayed:
        pieces.append(_blocks_html(row.result.displayed, ""))
    return "".join(pieces)


def _progress_html(row: Row) -> str:
    progress = row.progress
    if progress is None:
        return ""
    words = escape(visible(str(progress.text)[:200]))
    done, total = _number(progress.done), _number(progress.total)
    if done is None or not total or total <= 0:
        return f"<div{part('small', 'muted')}>{words}{'' if done is None else f' {done:g}'}</div>"
    share = min(1.0, max(0.0, done / total))
    aria = f'role="progressbar" aria-valuemin="0" aria-valuemax="100" aria-valuenow="{share * 100:.0f}"'
    return (
        f"<div{part('track')} {aria}><div{part('fill', f'w{round(share * 50) * 2}')}></div></div>"
        f"<div{part('small', 'muted')}>{words} {done:g} of {total:g}</div>"
    )


def _number(value: Any) -> float | None:
    """What a tool gave as a number, if it is a finite one."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _console_html(row: Row, written: str) -> str:
    lines = written.split("\n")
    if row.final:
        body = f"<div{part('pre', 'scroll')}>{visible_html(written)}</div>"
        if row.console.dropped:
            body = f"<div{part('muted')}>{size_of(row.console.dropped)} before this are not shown</div>{body}"
        return fold(f"printed: {_lines(len(lines))}", body)
    return f"<div{part('pre')}>{visible_html(chr(10).join(lines[-_OPEN_LINES:]))}</div>"


def _result_html(row: Row) -> str:
    result = row.result
    assert result is not None
    table = styled_table(row.table) if row.table else ""
    # Of a longer value the model got a part; a hook may have cut it on purpose, so only its size is told
    whole = len(result.value) if isinstance(result.value, str) else 0
    body = _blocks_html(result.content, table, whole)
    tone = {"failed": "red", "blocked": "muted", "stopped": "muted"}.get(row.state)
    if tone:
        body = f"<div{part(tone)}>{body}</div>"
    diff = _diff_of(row)
    if diff:
        body += _text_html(diff, "diff")
    trace = _traceback_of(row)
    if trace:
        body += fold("traceback", f"<div{part('pre', 'scroll')}>{visible_html(plain(trace))}</div>")
    return body


def _blocks_html(content: Any, table: str, whole: int = 0) -> str:
    """Text (of `whole` characters before it was cut) and images.

    A `table` stands for the text that was made of it for the model, which is folded.
    """
    text = plain("\n".join(block.text for block in content if block.type == "text")).strip("\n")
    images = "".join(_image_html(block) for block in content if block.type == "image")
    if table:
        folded = fold("as the model got it", f"<div{part('pre', 'scroll')}>{visible_html(text[:_SHOWN_RESULT])}</div>")
        return table + images + (folded if text else "")
    return (_text_html(text, "", whole) if text else "") + images


def _text_html(text: str, language: str, whole: int = 0) -> str:
    """The first lines in sight, more of them folded, the rest named by its size."""
    shown = text[:_SHOWN_RESULT]
    lines = shown.split("\n")
    head, tail = "\n".join(lines[:_OPEN_LINES]), "\n".join(lines[_OPEN_LINES:])
    if len(head) > 1_200:
        head, tail = shown[:1_000], shown[1_000:]
    render = (lambda piece: code_html(piece, language)) if language else visible_html
    body = f'<div{part("pre")} dir="auto">{render(head)}</div>'
    if tail or len(text) > len(shown):
        size = (
            f"{size_of(len(text))} of {size_of(whole)}" if whole > len(text) + 100 else f"{size_of(len(text))} in all"
        )
        more = f"{_lines(text.count(chr(10)) + 1)}, {size}"
        cut = ""
        if len(text) > len(shown):
            cut = f"<div{part('amber', 'small')}>cut: {size_of(len(text) - len(shown))} more are not shown here</div>"
        body += fold(more, f'<div{part("pre", "scroll")} dir="auto">{render(tail)}</div>{cut}')
    return body


def _displayed_html(details: Any) -> str:
    """What a running tool displayed last."""
    bundle = details.get("display") if isinstance(details, dict) else None
    if not isinstance(bundle, dict):
        return ""
    for kind in sorted(_IMAGE_TYPES & bundle.keys()):
        return _image_html(ImageContent(bundle[kind], kind))
    table = clean_table(bundle.get("text/html"))
    text = bundle.get("text/plain")
    return styled_table(table) if table else _text_html(plain(text), "") if isinstance(text, str) else ""


def _image_html(image: ImageContent) -> str:
    size = len(image.data) if isinstance(image.data, str) else 0
    if not size or image.mime_type not in _IMAGE_TYPES or size > _MAX_IMAGE or not _BASE64.fullmatch(image.data):
        kind = escape(image.mime_type[:60])
        return f"<div{part('muted', 'small')}>image ({kind}, {size_of(size * 3 // 4, 'bytes')}), not shown</div>"
    data = "".join(image.data.split())
    return f'<img{part("image")} alt="image returned by the tool" src="data:{image.mime_type};base64,{data}">'


def _diff_of(row: Row) -> str:
    details = row.result.details if row.result is not None else None
    diff = details.get("diff") if isinstance(details, dict) else getattr(details, "diff", None)
    return diff if isinstance(diff, str) else ""


def _traceback_of(row: Row) -> str:
    error = row.result.error if row.result is not None else None
    if error is None or isinstance(error, ToolError) or row.state != "failed":
        return ""
    try:
        return short_traceback(error)
    except Exception:
        return ""


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def fold(summary: str, body: str) -> str:
    """`body` (HTML) folded under `summary` (text)."""
    return f"<details{part('fold')}><summary{part('summary')}>{escape(summary)}</summary>{body}</details>"


def unfolder(summary: str) -> str:
    """A fold whose body stands elsewhere in the card, in what is marked `earlier`."""
    return f"<details{part('unfold')}><summary{part('summary')}>{escape(summary)}</summary></details>"
