"""pandas tables and numpy arrays as text for a model: size, types, head and tail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ._json_form import safe_text

ALL_ROWS = 20
HEAD = TAIL = 5
MAX_COLUMNS = 30
_MAX_CELL = 120
_COUNTED_CELLS = 20_000_000
"""Above this size, missing values and means are not counted: a result must not cost seconds."""


def is_table(value: Any, longer_than: int = -1) -> bool:
    """Whether `table_text` has a text for `value`; with `longer_than` only a DataFrame, or what has more values."""
    pandas, numpy = sys.modules.get("pandas"), sys.modules.get("numpy")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return True
    if pandas is not None and isinstance(value, pandas.Series | pandas.Index):
        return bool(value.size > longer_than)
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim > 0 and value.size > longer_than


def table_text(value: Any) -> str | None:
    """The text for a DataFrame, Series, Index or ndarray; None for anything else."""
    if (pandas := sys.modules.get("pandas")) is not None:
        if isinstance(value, pandas.DataFrame):
            return _frame_text(value)
        if isinstance(value, pandas.Series):
            return _series_text(value)
        if isinstance(value, pandas.Index):
            return _series_text(value.to_series(index=range(len(value)), name=value.name), "Index")
    if (numpy := sys.modules.get("numpy")) is not None and isinstance(value, numpy.ndarray) and value.ndim:
        return _array_text(value)
    return None


def _frame_text(frame: Any) -> str:
    rows, columns = frame.shape
    lines = [f"DataFrame: {_count(rows, 'row')} x {_count(columns, 'column')}"]
    missing = frame.isna().sum().tolist() if frame.size <= _COUNTED_CELLS else [0] * columns
    kinds = [
        f"{_label(name)} {dtype}{f' ({_count(gone, None)} missing)' if gone else ''}"
        for name, dtype, gone in zip(frame.columns, frame.dtypes, missing, strict=True)
    ]
    if kinds:
        lines.append("Columns: " + ", ".join(_shortened(kinds, MAX_COLUMNS)))
    if rows and columns:
        lines += ["", *_frame_rows(frame)]
    return "\n".join(lines)


def _frame_rows(frame: Any) -> list[str]:
    columns = frame.shape[1]
    shown = list(range(columns))
    if columns > MAX_COLUMNS:
        shown = [*range(MAX_COLUMNS // 2), *range(columns - MAX_COLUMNS // 2, columns)]
    part = frame.iloc[:, shown]
    index_name = " / ".join(_label(name) for name in part.index.names if name is not None)
    header = [index_name, *(_label(name) for name in part.columns)]
    rows: list[list[str] | None] = []
    pieces = [part] if len(part) <= ALL_ROWS else [part.iloc[:HEAD], part.iloc[-TAIL:]]
    for piece in pieces:
        if rows:
            rows.append(None)
        for label, *values in piece.itertuples(name=None):
            rows.append([_label(label), *map(_cell, values)])
    if columns > MAX_COLUMNS:
        middle = 1 + MAX_COLUMNS // 2
        header.insert(middle, "...")
        for row in rows:
            if row is not None:
                row.insert(middle, "...")
    return markdown_table(header, rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str] | None]) -> list[str]:
    """The lines of a Markdown table; a row that is None stands for the rows left out."""
    lines = [_row(header), _row(["---"] * len(header))]
    lines += [_row(["..."] * len(header) if row is None else row) for row in rows]
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _series_text(series: Any, kind: str = "Series") -> str:
    name = "" if series.name is None else f" {_label(series.name)}"
    gone = int(series.isna().sum()) if series.size <= _COUNTED_CELLS else 0
    text = f"{kind}{name}: {_count(len(series), 'value')}, {series.dtype}"
    if gone:
        text += f" ({_count(gone, None)} missing)"
    if not len(series):
        return text
    label = "value" if series.name is None else series.name
    return "\n".join([text, "", *_frame_rows(series.to_frame(name=label))])


def _array_text(array: Any) -> str:
    numpy = sys.modules["numpy"]
    text = f"ndarray: shape {array.shape}, {array.dtype}"
    if 0 < array.size <= _COUNTED_CELLS:
        if array.dtype.kind in "iuf":
            finite = array[numpy.isfinite(array)]
            if finite.size:
                text += f"; min {finite.min():.6g}, mean {finite.mean(dtype=float):.6g}, max {finite.max():.6g}"
            if gone := array.size - finite.size:
                text += f"; {_count(int(gone), None)} not finite"
        elif array.dtype.kind == "b":
            text += f"; {_count(int(array.sum()), None)} true"
    with numpy.printoptions(threshold=200, edgeitems=3, precision=6, suppress=False, linewidth=120):
        return f"{text}\n{safe_text(array)}" if array.size else text


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else safe_text(value)
    text = " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 3] + "..."


def _label(name: Any) -> str:
    return " / ".join(map(_cell, name)) if isinstance(name, tuple) else _cell(name)


def _shortened(items: list[str], limit: int) -> list[str]:
    if len(items) <= limit:
        return items
    return [*items[: limit // 2], f"... ({len(items) - limit // 2 * 2:,} more)", *items[-(limit // 2) :]]


def _count(number: int, noun: str | None) -> str:
    if noun is None:
        return f"{number:,}"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
