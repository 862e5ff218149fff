"""The tool `grep`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..agent._cut import MAX_BYTES
from ..agent.tool import Tool, ToolResult
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._files import kind, opened
from ._filetype import SNIFF, is_binary
from ._globs import compile_glob
from ._lines import Line, LineReader
from ._matchers import Matcher, Query, Unsupported, batches, ripgrep, search_by_ourselves, search_with_ripgrep
from ._paths import Workspace
from ._thread_tool import thread_tool
from ._truncate import MAX_LINE_CHARACTERS, count, cut_head, cut_line
from ._walk import Walk

LIMIT = 100
MAX_LIMIT = 5_000
MAX_CONTEXT = 100

DESCRIPTION = (
    "Search in files for a regular expression, line by line; binary files and what .gitignore excludes are left out. "
    "Matches come as path:line: text, lines of context as path-line- text. Not for finding files by name (find) or for "
    "reading a file that you know (read)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "Regular expression, or plain text with literal."},
        "path": {"type": "string", "description": "Folder or file to search; the root folder if left out."},
        "glob": {
            "type": "string",
            "description": "Only files that match, like '*.py' or 'src/**/*.ts'; with '!' in front all others.",
        },
        "ignoreCase": {"type": "boolean", "description": "Let upper and lower case match; false if left out."},
        "literal": {
            "type": "boolean",
            "description": "Take the pattern as plain text; false if left out.",
        },
        "context": {
            "type": "integer",
            "minimum": 0,
            "description": "Lines to show before and after each match; 0 if left out.",
        },
        "limit": {"type": "integer", "minimum": 1, "description": f"Matches at most; {LIMIT} if left out."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class GrepDetails:
    """`details` of a search: matches and files shown, whether there are more, and how many lines were cut short."""

    matches: int
    files: int
    more: bool
    cut_lines: int


def grep_tool(workspace: Workspace, *, program: str | None = "") -> Tool:
    """A tool that searches in files of `workspace`.

    Args:
        program: Path of ripgrep; None searches without; empty looks for it at each call.
    """

    return thread_tool("grep", DESCRIPTION, PARAMETERS, partial(_grep, workspace, program))


def _grep(workspace: Workspace, program: str | None, params: dict[str, Any], signal: AbortSignal) -> ToolResult:
    query = Query(params["pattern"], bool(params.get("ignoreCase")), bool(params.get("literal")))
    if "\n" in query.pattern:
        raise ToolError("The pattern holds a newline, but the search goes line by line; search for one of its lines.")
    limit = min(params.get("limit") or LIMIT, MAX_LIMIT)
    given = params.get("path") or "."
    start = workspace.find(given, reading=True)
    if not os.path.lexists(start):
        raise workspace.missing(start, given)
    if not start.is_dir() and not start.is_file():
        raise ToolError(f"{workspace.shown(start)} is {kind(start.lstat().st_mode)}, not a file or folder.")
    report = _Report(workspace, limit, min(params.get("context") or 0, MAX_CONTEXT))
    walk = Walk(workspace, start, signal.raise_if_aborted) if start.is_dir() else None
    own = search_by_ourselves(workspace, query, signal)
    program = ripgrep() if program == "" else program
    matcher: Matcher = search_with_ripgrep(program, workspace, query, signal) if program else own
    for batch in batches(_files(start, walk, params.get("glob"))):
        try:
            report.take(matcher(batch, limit + 1))
        except Unsupported:
            matcher = own
            report.take(matcher(batch, limit + 1))
        if report.more:
            break
    return report.result(query.pattern, start, walk.unreadable if walk else [])


def _files(start: Path, walk: Walk | None, glob: str | None) -> Iterator[Path]:
    """Files to search, in order."""
    wanted = True
    matches = None
    if glob:
        wanted = not glob.startswith("!")
        matches = compile_glob(glob.removeprefix("!"))
    if walk is None:
        if matches is None or matches(start.name, False) is wanted:
            yield start
        return
    for found in walk:
        if found.is_file and (matches is None or matches(found.path, False) is wanted):
            yield start / found.path


class _Report:
    """Collects matches as text until `limit` of them, or the size of an output, is reached."""

    def __init__(self, workspace: Workspace, limit: int, context: int) -> None:
        self.workspace = workspace
        self.limit = limit
        self.context = context
        self.out: list[str] = []
        self.size = 0
        self.matches = 0
        self.files = 0
        self.cut_lines = 0
        self.more = False

    def take(self, matches: Iterator[tuple[Path, list[int]]]) -> None:
        for file, numbers in matches:
            shown = numbers[: self.limit - self.matches]
            if len(shown) < len(numbers):
                self.more = True
            if shown:
                self._file(file, shown)
            if self.more or self.size > MAX_BYTES:
                self.more = True
                return

    def _file(self, file: Path, numbers: list[int]) -> None:
        name = self.workspace.shown(file)
        try:
            with opened(self.workspace, file) as (stream, _):
                if is_binary(stream.read(SNIFF)):
                    return
                stream.seek(0)
                before = self.matches
                self._lines(LineReader(stream), name, numbers)
                self.files += self.matches > before
        except (FileNotFoundError, ToolError):  # gone or swapped since it was searched
            return

    def _lines(self, reader: LineReader, name: str, numbers: list[int]) -> None:
        hits = set(numbers)
        at = last = 0
        for number in numbers:
            first = max(number - self.context, last + 1)
            if self.context and self.out and (first > last + 1 or last == 0):
                self._add("--")
            at += reader.skip(first - 1 - at)
            for current in range(first, number + self.context + 1):
                if current > number and current in hits:
                    break
                line = reader.line(MAX_LINE_CHARACTERS * 4 + 8)
                if line is None:
                    return
                at = last = current
                self._show(name, current, line, current in hits)

    def _show(self, name: str, number: int, line: Line, is_match: bool) -> None:
        text = line.text.removeprefix("\ufeff") if number == 1 else line.text
        shown = cut_line(text, max(len(text), line.length) if len(line.data) < line.length else None)
        self.cut_lines += shown != text
        mark = ":" if is_match else "-"
        self.matches += is_match
        self._add(f"{name}{mark}{number}{mark} {shown}")

    def _add(self, line: str) -> None:
        self.out.append(line)
        self.size += len(line) + 1

    def result(self, pattern: str, start: Path, unreadable: list[str]) -> ToolResult:
        cut = cut_head("\n".join(self.out), max_lines=1 << 31)
        details = GrepDetails(self.matches, self.files, self.more, self.cut_lines)
        notes = []
        if self.more:
            notes.append(
                f"Stopped at {count(self.matches, 'match')}; there are more: use a narrower pattern, path or glob, "
                f"or raise limit."
            )
        if cut.by:
            notes.append(f"{cut.left_out} of matches left out ({MAX_BYTES // 1024} KB limit).")
        if self.cut_lines:
            notes.append(f"Long lines are cut to {MAX_LINE_CHARACTERS} characters; read shows them whole.")
        if unreadable:
            notes.append(f"Not looked into: {', '.join(unreadable[:5])}{', …' if len(unreadable) > 5 else ''}.")
        text = cut.text or f"No matches for {pattern} in {self.workspace.named(start)}."
        if notes:
            text += "\n\n[" + " ".join(notes) + "]"
        return ToolResult([TextContent(text)], details)
