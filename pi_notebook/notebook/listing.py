"""Listing: a small table that reads well as text and as HTML, with everything in it escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Listing:
    """Rows of plain text under headings; `empty` is said where there are none."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str = "Nothing."

    def __repr__(self) -> str:
        if not self.rows:
            return self.empty
        table = [list(map(str, row)) for row in self.rows]
        if any(self.headings):
            table.insert(0, list(self.headings))
        widths = [max(len(row[column]) for row in table) for column in range(len(self.headings))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.rows:
            return html.escape(self.empty)
        cell = 'style="text-align:left;vertical-align:top"'
        head = "".join(f"<th {cell}>{html.escape(heading)}</th>" for heading in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td {cell}>{html.escape(str(value))}</td>" for value in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Words(str):
    """A text that shows itself as it is, without quotes, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
