"""Where conversations are kept: `.pi_notebook/NAME.jsonl` beside the notebook.

One file per notebook and per named session, of mode 0600, in a folder whose `.gitignore` keeps it out of git. Lines are
only ever appended, each in one write, as soon as a message is whole. Two kernels may write to one file: every kernel
writes conversations of its own, whose id is in each line, and a resumed conversation goes on under a new id.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import quote

from ..ai.keys import known_keys
from ..errors import PiNotebookError
from .records import SCHEMA_VERSION, Record, encode

FOLDER = ".pi_notebook"
NO_NOTEBOOK = "untitled"
"""Name of the file where no front end has told which notebook this is."""
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class StoreError(PiNotebookError):
    """A conversation's file cannot be read."""


@dataclass(frozen=True)
class Place:
    """The folder of a notebook and its file name; `NO_NOTEBOOK` where that is not known."""

    folder: Path
    name: str = NO_NOTEBOOK

    def file(self, session: str = "") -> Path:
        """The file of the notebook's own conversations, or of those of a named session."""
        name = _file_name(self.name) + (f"@{_file_name(session)}" if session else "")
        return self.folder / FOLDER / f"{name}.jsonl"

    def others(self, session: str) -> list[Path]:
        """The files of all other notebooks and sessions in this folder."""
        try:
            return sorted(p for p in (self.folder / FOLDER).glob("*.jsonl") if p != self.file(session))
        except OSError:
            return []


def _file_name(name: str) -> str:
    """`name` as a part of a file name on any system; `%` marks what had to be written in another way."""
    kept = "".join(
        char if char.isprintable() and char not in '/\\:*?"<>|%@' else quote(char, "", errors="surrogatepass")
        for char in name
    )
    if len(kept.encode()) > 100:
        kept = f"{kept[:20]}-{hashlib.sha256(kept.encode()).hexdigest()[:16]}"
    return kept


def find_place(shell: Any) -> Place:
    """Where the notebook of `shell` lies.

    VS Code puts its path into `__vsc_ipynb_file__`. A Jupyter server puts `folder/name` into `JPY_SESSION_NAME`: an
    absolute path if the client named the session, else one relative to the server's root; then, and where the path is
    of another machine, the kernel was started in the notebook's folder. Neither: the folder in which Python started.
    """
    start = Path(getattr(shell, "starting_dir", "") or Path.cwd())
    told = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    if not isinstance(told, str) or not told.strip() or told.endswith(("/", "\\")):
        return Place(start)
    path = Path(told)
    name = path.name if os.sep in told or "\\" not in told else PureWindowsPath(told).name
    name = re.sub(f"-jvsc-{_UUID}", "", name)  # VS Code's own copy on a remote server
    if re.fullmatch(_UUID, name):
        name = NO_NOTEBOOK
    folder = path.parent
    return Place(folder if path.is_absolute() and folder.is_dir() else start, name.removeprefix("RTC:"))


class ConversationLog:
    """Appends the lines of this kernel's conversations to one file. Never raises: what fails becomes a notice.

    Any thread. An append is one write, without waiting for the disk: a crash of the kernel loses nothing, a crash of
    the machine the last seconds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._fd: int | None = None
        self._end = -1
        self._told = False
        self._notices: list[str] = []
        self._lock = threading.Lock()

    def prepare(self) -> bool:
        """Have the file open. True if it holds nothing of what was appended here: it was opened only now, or anew."""
        with self._lock:
            if self._fd is not None and self._is_same_file(self._fd):
                return False
            self._close()
            try:
                self._fd = _open(self.path)
                self._end = -1
                self.problem = ""
                self._told = False
            except (OSError, StoreError) as error:
                self._fail(error)
            return True

    def append(self, record: Record) -> None:
        with self._lock:
            if self._fd is None:
                return
            try:
                self._write(self._fd, encode(record, known_keys()))
            except OSError as error:
                self._fail(error)
            except Exception as error:  # something in the record that nobody foresaw must not end a run
                self._notices.append(f"A {record['type']} could not be kept on disk: {type(error).__name__}: {error}")

    def __del__(self) -> None:
        self._close()

    def take_notices(self) -> list[str]:
        """What people should be told, each once."""
        with self._lock:
            notices, self._notices = self._notices, []
            return notices

    def _write(self, fd: int, line: bytes) -> None:
        size = os.fstat(fd).st_size
        if size not in (0, self._end):  # somebody else wrote last; what a crash has torn must not tear this line too
            os.lseek(fd, size - 1, os.SEEK_SET)
            if os.read(fd, 1) != b"\n":
                line = b"\n" + line
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(fd, rest) :]
        self._end = size + len(line)

    def _is_same_file(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except OSError:
            return False

    def _fail(self, error: Exception) -> None:
        self._close()
        self.problem = (
            f"{error.strerror or error} ({error.filename or self.path})" if isinstance(error, OSError) else str(error)
        )
        if not self._told:
            self._told = True
            self._notices.append(
                f"This conversation is not kept on disk: {self.problem.rstrip('.')}. "
                "It goes on in memory, until this kernel ends."
            )

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _open(path: Path) -> int:
    """Open (and make) the file for appending.

    Raises:
        OSError, StoreError: It cannot be written, is no plain file, or a newer version of this package has written it.
    """
    path.parent.mkdir(exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    # a link or a pipe with this name was not made by this package, but perhaps came with somebody's repository
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, name, 0)
    fd = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise StoreError(f"{path} is no plain file.")
        with os.fdopen(fd, "rb", closefd=False) as file:
            for line in file:
                if b'"version"' in line[:200]:
                    check_version(_parsed(line), path)
        if hasattr(os, "fchmod"):
            os.fchmod(fd, 0o600)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_records(path: Path) -> tuple[list[Record], list[str]]:
    """All records of a file, and notices about lines that cannot be read.

    Raises:
        StoreError: There is no such file, it cannot be read, or a newer version of this package has written it.
    """
    records: list[Record] = []
    lost: list[int] = []
    number = 0
    whole = True
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(fd, "rb") as file:
            for number, line in enumerate(file, 1):
                record = _parsed(line)
                if record is not None:
                    check_version(record, path)
                    if "from" in record and lost and lost[-1] == number - 1:
                        lost.pop()  # torn by a crash, and told of when this conversation was resumed
                    records.append(record)
                elif line.strip():
                    lost.append(number)
                whole = line.endswith(b"\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from None
    notices = []
    if lost and lost[-1] == number and not whole:
        lost.pop()
        notices.append("The last line of the file is torn (the kernel ended while it was written) and is left out.")
    if lost:
        some = ", ".join(map(str, lost[:5])) + (", ..." if len(lost) > 5 else "")
        notices.append(f"Lines that cannot be read are left out: {some} of {path.name}.")
    return records, notices


def check_version(record: Record | None, path: Path) -> None:
    """Raise StoreError for the record of a newer schema."""
    if record is None or record["type"] != "conversation":
        return
    version = record.get("version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer pi_notebook (its schema is {version!r}, this one knows {SCHEMA_VERSION}). "
            "It is left as it is; update pi_notebook to use it."
        )


def _parsed(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_record = isinstance(record, dict) and isinstance(record.get("type"), str)
    return record if is_record and isinstance(record.get("conversation"), str) else None
