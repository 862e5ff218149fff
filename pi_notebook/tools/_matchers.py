"""Which lines of which files match: by ripgrep, or by our own search where it is missing or refuses the pattern.

Both only say line numbers. What is shown is read from the files by one piece of code, so the output is the same.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from ..ai.abort import AbortSignal
from ..errors import ToolError
from ._files import opened
from ._filetype import SNIFF, is_binary
from ._lines import LineReader
from ._paths import Workspace
from ._pattern import Pattern, decoded

MAX_SEARCHED_LINE = 64 * 1024 * 1024
"""Bytes of one line that our own search looks at."""
LONG_LINE = 64 * 1024
LINE_SECONDS = 1.0
"""Time for one line before a pattern counts as one that never ends; a long line is given more."""
LONG_LINE_SECONDS = 10.0
PIECE_SECONDS = 0.05
"""Time for a look at many lines at once; if it is not enough they are looked at one by one."""
TOTAL_SECONDS = 60.0
_BATCH_FILES = 1_000
_BATCH_BYTES = 24_000 if sys.platform == "win32" else 100_000
_RECORD = re.compile(rb"([^\0]*)\0(\d+):[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Query:
    pattern: str
    ignore_case: bool = False
    literal: bool = False


class Unsupported(Exception):
    """ripgrep does not take this pattern, or did not survive these files."""


class Matcher(Protocol):
    def __call__(self, files: Sequence[Path], limit: int) -> Iterator[tuple[Path, list[int]]]:
        """For each file with a match, in order: the numbers of its first `limit` matching lines, from 1."""


def batches(files: Iterator[Path]) -> Iterator[list[Path]]:
    """Files in groups that fit one command line."""
    group: list[Path] = []
    used = 0
    for file in files:
        needed = len(os.fsencode(file)) + 1
        if group and (len(group) == _BATCH_FILES or used + needed > _BATCH_BYTES):
            yield group
            group, used = [], 0
        group.append(file)
        used += needed
    if group:
        yield group


def ripgrep() -> str | None:
    """Where `rg` is: on the PATH, or among the scripts of this Python; None if it is not installed."""
    return shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))


def search_with_ripgrep(program: str, workspace: Workspace, query: Query, signal: AbortSignal) -> Matcher:
    """A matcher that runs `program` on each batch. It raises `Unsupported` for patterns that ripgrep does not know."""
    deadline = time.monotonic() + TOTAL_SECONDS
    command = [program, "--no-config", "--null", "--with-filename", "--line-number", "--no-heading", "--color=never"]
    command += ["--max-columns=1", "--no-messages", "--text", "--mmap", "--crlf", "--no-ignore", "--hidden"]
    command += ["--ignore-case" if query.ignore_case else "--case-sensitive"]
    command += ["--fixed-strings"] if query.literal else []

    def match(files: Sequence[Path], limit: int) -> Iterator[tuple[Path, list[int]]]:
        arguments = [*command, f"--max-count={limit}", "-e", query.pattern, "--", *map(os.fspath, files)]
        out = _run(arguments, workspace.root, signal, deadline)
        lines: dict[bytes, list[int]] = {}
        for record in _RECORD.finditer(out):
            lines.setdefault(record[1], []).append(int(record[2]))
        for file in files:
            if numbers := lines.get(os.fsencode(file)):
                yield file, numbers

    return match


def _run(arguments: list[str], folder: Path, signal: AbortSignal, deadline: float) -> bytes:
    process = subprocess.Popen(
        arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    forget = signal.on_abort(process.kill)
    try:
        out, errors = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise ToolError(_too_long()) from error
    finally:
        forget()
        if process.poll() is None:
            process.kill()
            process.communicate()
    signal.raise_if_aborted()
    if process.returncode < 0:  # a file that shrinks while it is mapped kills it
        raise Unsupported("ripgrep was ended by a signal")
    if process.returncode not in (0, 1) and not out:
        message = errors.decode("utf-8", "replace").strip()
        if "regex" in message or "look-around" in message or "backreferences" in message or "literal" in message:
            raise Unsupported(message)
    return out


def _too_long() -> str:
    return f"The search took more than {TOTAL_SECONDS:g} s; give a narrower path or glob."


def search_by_ourselves(workspace: Workspace, query: Query, signal: AbortSignal) -> Matcher:
    """A matcher in Python, held to a time per line and in all.

    Raises:
        ToolError: The pattern is no regular expression.
    """
    pattern = Pattern(query.pattern, ignore_case=query.ignore_case, literal=query.literal)
    deadline = time.monotonic() + TOTAL_SECONDS

    def check() -> None:
        signal.raise_if_aborted()
        if time.monotonic() > deadline:
            raise ToolError(_too_long())

    def match(files: Sequence[Path], limit: int) -> Iterator[tuple[Path, list[int]]]:
        for file in files:
            check()
            try:
                with opened(workspace, file) as (stream, _):
                    if is_binary(stream.read(SNIFF)):
                        continue
                    stream.seek(0)
                    numbers = _matching_lines(stream, pattern, limit, check, workspace.shown(file))
            except (FileNotFoundError, ToolError) as error:
                if isinstance(error, _SearchError):
                    raise
                continue
            if numbers:
                yield file, numbers

    return match


class _SearchError(ToolError):
    """Ends the whole search, unlike a file that cannot be read."""


def _matching_lines(stream: IO[bytes], pattern: Pattern, limit: int, check: Callable[[], None], name: str) -> list[int]:
    reader = LineReader(stream, check)
    numbers: list[int] = []
    number = left = 0

    def may_match(data: bytes) -> bool:
        return pattern.may_be_in(data if number else data.removeprefix(codecs.BOM_UTF8), PIECE_SECONDS)

    while len(numbers) < limit:
        if not left:
            passed, left = reader.piece(may_match)
            number += passed
            if passed:
                continue
        if (line := reader.line(MAX_SEARCHED_LINE)) is None:
            break
        left -= 1
        number += 1
        text = decoded(line.data if number > 1 else line.data.removeprefix(codecs.BOM_UTF8))
        try:
            matches = pattern.is_in_line(text, LONG_LINE_SECONDS if len(text) > LONG_LINE else LINE_SECONDS)
        except TimeoutError as error:
            raise _SearchError(_too_hard(number, name, len(text))) from error
        if matches:
            numbers.append(number)
        if number % 1_000 == 0:
            check()
    return numbers


def _too_hard(number: int, name: str, length: int) -> str:
    said = f"The pattern takes too long on line {number} of {name}"
    if length > LONG_LINE:
        return f"{said}, which has {length:,} characters. Make it simpler, or leave the file out with glob."
    return f"{said}: it has repetitions inside repetitions. Make it simpler."
