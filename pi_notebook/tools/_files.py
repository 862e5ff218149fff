"""Opening and replacing files below a root, so that a link put there after the check is not followed.

A real path has no links in it. So each folder on the way is opened from its parent's descriptor, refusing links
(`openat` with `O_NOFOLLOW`); whoever swaps a folder for a link in between makes the call fail, not escape. Windows has
no such calls: there the path is resolved again right before use, which leaves a gap of microseconds.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..errors import ToolError
from ._paths import Workspace, is_inside, reason

HAS_AT = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_FOLDER = (getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)) | getattr(
    os, "O_CLOEXEC", 0
)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _FILE | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(slots=True)
class Place:
    """A name in a folder that is held open. Without `openat`, `folder` is None and names are whole paths."""

    name: str
    folder: int | None
    path: Path
    made: list[Path] = field(default_factory=list)

    def beside(self, name: str) -> str:
        """`name` in the same folder, as the calls of `os` take it together with `dir_fd=folder`."""
        return name if self.folder is not None else str(self.path.with_name(name))

    def open(self, flags: int, mode: int = 0o666, name: str | None = None) -> int:
        return os.open(self.name if name is None else name, flags | _FILE, mode, dir_fd=self.folder)

    def stat(self) -> os.stat_result | None:
        """Of the name itself, not of where a link leads; None if there is nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


@contextmanager
def held(root: Path, path: Path, *, make: bool = False) -> Iterator[Place]:
    """Hold the folder of `path` open. `make`: missing folders are made, and listed in `made`.

    Raises:
        OSError: A folder is missing, no folder, a link, or cannot be entered.
    """
    base = root if is_inside(root, path) else path.parent
    parts = path.relative_to(base).parts
    if not parts:
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not HAS_AT:
        made = _make_parents(path) if make else []
        if Path(os.path.realpath(path.parent)) != path.parent:
            raise OSError(errno.ELOOP, "a link was put there just now")
        yield Place(str(path), None, path, made)
        return
    folder = os.open(base, _FOLDER)
    made = []
    try:
        for depth, part in enumerate(parts[:-1], 1):
            try:
                inner = os.open(part, _FOLDER, dir_fd=folder)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                    made.append(base.joinpath(*parts[:depth]))
                inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield Place(parts[-1], folder, path, made)
    finally:
        os.close(folder)


def _make_parents(path: Path) -> list[Path]:
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


@contextmanager
def opened(workspace: Workspace, path: Path) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """The regular file at the real path `path`, for reading. Never waits for a pipe or a device.

    Raises:
        ToolError: It is a folder, pipe, socket or device, or the system refuses. `FileNotFoundError` passes through.
    """
    name = workspace.shown(path)
    try:
        with held(workspace.root, path) as place:
            descriptor = place.open(_READ)
    except FileNotFoundError:
        raise
    except IsADirectoryError as error:
        raise ToolError(f"{name} is a folder; list it with ls.") from error
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {reason(error)}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{name} is a folder; list it with ls.")
        raise ToolError(f"{name} is {kind(status.st_mode)}, not a file.")
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        yield file, status


def kind(mode: int) -> str:
    """What sort of thing a mode stands for."""
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFREG: "a file",
    }
    return names.get(stat.S_IFMT(mode), "a special file")


def read_whole(workspace: Workspace, path: Path, limit: int) -> tuple[bytes, os.stat_result]:
    """All bytes of a file of at most `limit` bytes. Raises like `opened`, and `ToolError` if it is larger."""
    from ..agent._cut import readable_size

    with opened(workspace, path) as (file, status):
        chunks, total = [], 0
        while chunk := file.read(min(1 << 20, limit + 1 - total)):
            chunks.append(chunk)
            total += len(chunk)
            if total > limit:
                raise ToolError(
                    f"{workspace.shown(path)} is {readable_size(max(status.st_size, total))}, "
                    f"more than the {readable_size(limit)} this tool takes. Use bash or python for it."
                )
        return b"".join(chunks), status


def same_file(before: os.stat_result, now: os.stat_result | None) -> bool:
    """Whether nothing replaced or changed the file between the two looks."""
    return now is not None and (
        (before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns, before.st_ctime_ns)
        == (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    )


def replace_file(
    workspace: Workspace, path: Path, data: bytes, *, before: os.stat_result | None, old: bytes | None = None
) -> None:
    """Make `data` the content of the file at the real path `path`, whole or not at all.

    The data goes to a new file beside it, which then takes the name. Mode, owner and extended attributes are kept.
    A file with several hard links is written in place instead, so that it stays one file; if that fails its `old`
    content is put back.

    Args:
        before: The file as it was read; None if there was none. If it is another by now nothing is written.

    Raises:
        ToolError: Nothing was changed, and why.
    """
    name = workspace.shown(path)
    made: list[Path] = []
    try:
        with held(workspace.root, path, make=before is None) as place:
            made = place.made
            _commit(place, data, before, old, name)
    except (OSError, ToolError) as error:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, ToolError):
            raise
        raise ToolError(f"{name} cannot be written: {reason(error)}. Nothing was changed.") from error


def _commit(place: Place, data: bytes, before: os.stat_result | None, old: bytes | None, name: str) -> None:
    if before is not None:
        _check_writable(place)
    temporary = place.beside(f".pi-notebook-{secrets.token_hex(6)}.tmp")
    descriptor = place.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL, name=temporary)
    try:
        try:
            _write_all(descriptor, data)
            if before is not None:
                _copy_status(place, descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        now = place.stat()
        if (before is None) != (now is None) or (before is not None and not same_file(before, now)):
            raise ToolError(f"{name} was changed by someone else in the meantime. Nothing was written; read it again.")
        if before is not None and before.st_nlink > 1 and old is not None:
            _write_in_place(place, data, old)
        else:
            os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            temporary = ""
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place.folder)


def _check_writable(place: Place) -> None:
    """A file that may not be written is not replaced either, though its folder would allow that."""
    try:
        os.close(place.open(os.O_WRONLY))
    except OSError as error:
        if error.errno not in (errno.ETXTBSY, errno.ENOENT, errno.ELOOP):  # a running program; changes noticed later
            raise


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view[: 1 << 24]) :]


def _write_in_place(place: Place, data: bytes, old: bytes) -> None:
    descriptor = place.open(os.O_WRONLY)
    try:
        try:
            _write_all(descriptor, data)
            os.ftruncate(descriptor, len(data))
        except OSError:
            os.lseek(descriptor, 0, os.SEEK_SET)
            _write_all(descriptor, old)
            os.ftruncate(descriptor, len(old))
            raise
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_status(place: Place, descriptor: int, before: os.stat_result) -> None:
    """Owner first: changing it clears set-id bits of the mode."""
    if hasattr(os, "fchown"):
        now = os.fstat(descriptor)
        if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            with suppress(OSError):
                os.fchown(descriptor, before.st_uid, before.st_gid)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            source = place.open(_READ)
            try:
                for attribute in os.listxattr(source):
                    with suppress(OSError):
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
            finally:
                os.close(source)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
