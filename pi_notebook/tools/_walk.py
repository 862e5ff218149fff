"""Walking a folder as git sees it: sorted, without what `.gitignore` files exclude, never through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ToolError
from ._files import _READ, HAS_AT, held
from ._gitignore import Rule, parse, verdict
from ._paths import Workspace, reason

MAX_IGNORE_FILE = 1 << 20
SKIPPED = ".git"


@dataclass(frozen=True, slots=True)
class Found:
    """Something below the folder walked. `path` is relative to that folder, with forward slashes."""

    path: str
    is_folder: bool
    is_file: bool


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one `.gitignore`. `prefix` leads from its folder to the folder walked, or is empty; `depth` is how
    many characters of a walked path lead to its folder."""

    rules: list[Rule]
    prefix: str = ""
    depth: int = 0

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        return verdict(self.rules, self.prefix + path[self.depth :], is_folder)

    def exclude_the_start(self) -> bool:
        """Whether they exclude the folder walked, or one that it is in."""
        parts = self.prefix.rstrip("/").split("/")
        return any(verdict(self.rules, "/".join(parts[: n + 1]), True) for n in range(len(parts)))


@dataclass(slots=True)
class _Folder:
    """One folder on the way down, held open. `path` is empty or ends with a slash."""

    path: str
    descriptor: int | None
    identity: tuple[int, int]
    entries: Iterator[os.DirEntry[str]]
    rules: list[_Rules]


@dataclass(slots=True)
class Walk:
    """Iterate over it for all that is below `start`, each folder before what is in it, by name within a folder.

    Args:
        workspace: Confines the walk.
        start: A real path of a folder inside it.
        check: Called once per folder; may raise to end the walk.
        unreadable: Folders that could not be opened, as shown paths; filled during the walk.

    A `start` that is ignored itself was asked for by name: then only the rules below it count.
    """

    workspace: Workspace
    start: Path
    check: Callable[[], object] = lambda: None
    unreadable: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Found]:
        stack: list[_Folder] = []
        try:
            try:
                stack.append(self._open(None, "", _rules_above(self.workspace, self.start)))
            except OSError as error:
                raise ToolError(f"{self.workspace.shown(self.start)} cannot be listed: {reason(error)}.") from error
            while stack:
                top = stack[-1]
                entry = next(top.entries, None)
                if entry is None:
                    _close(stack.pop())
                    continue
                found = self._look(top, entry)
                if found is None:
                    continue
                yield found
                if found.is_folder:
                    self._enter(stack, entry, found.path)
        finally:
            for folder in stack:
                _close(folder)

    def _look(self, folder: _Folder, entry: os.DirEntry[str]) -> Found | None:
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_file = not is_folder and entry.is_file(follow_symlinks=False)
        except OSError:
            is_folder = is_file = False
        if entry.name == SKIPPED:
            return None
        path = folder.path + entry.name
        for rules in reversed(folder.rules):
            excluded = rules.verdict(path, is_folder)
            if excluded is not None:
                if excluded:
                    return None
                break
        return Found(path, is_folder, is_file)

    def _enter(self, stack: list[_Folder], entry: os.DirEntry[str], path: str) -> None:
        self.check()
        try:
            inner = self._open(stack[-1], path + "/", stack[-1].rules, entry.name)
        except OSError as error:
            self.unreadable.append(f"{self.workspace.shown(self.start / path)} ({reason(error)})")
            return
        if any(folder.identity == inner.identity for folder in stack):
            _close(inner)  # a junction or a mount that leads back up
            return
        stack.append(inner)

    def _open(self, parent: _Folder | None, path: str, rules: list[_Rules], name: str = "") -> _Folder:
        full = self.start / path
        descriptor: int | None = None
        if HAS_AT:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            if parent is not None:
                descriptor = os.open(name, flags, dir_fd=parent.descriptor)
            elif full == self.workspace.root:
                descriptor = os.open(full, flags)
            else:
                with held(self.workspace.root, full) as place:
                    descriptor = os.open(place.name, flags, dir_fd=place.folder)
        elif Path(os.path.realpath(full)) != full:
            raise OSError(errno.ELOOP, "a link")
        try:
            status = full.stat() if descriptor is None else os.fstat(descriptor)
            with os.scandir(full if descriptor is None else descriptor) as found:
                entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
            own = _ignore_file(full, descriptor) if any(entry.name == ".gitignore" for entry in entries) else []
        except BaseException:
            if descriptor is not None:
                os.close(descriptor)
            raise
        if own:
            rules = [*rules, _Rules(own, depth=len(path))]
        return _Folder(path, descriptor, (status.st_dev, status.st_ino), iter(entries), rules)


def _close(folder: _Folder) -> None:
    if folder.descriptor is not None:
        os.close(folder.descriptor)


def _ignore_file(folder: Path, descriptor: int | None) -> list[Rule]:
    """The rules in a folder's `.gitignore`; none if it is a link (git follows none either)."""
    name = ".gitignore" if descriptor is not None else str(folder / ".gitignore")
    try:
        file = os.open(name, _READ, dir_fd=descriptor)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        return parse(os.fsdecode(os.read(file, MAX_IGNORE_FILE)))
    except OSError:
        return []
    finally:
        os.close(file)


def _rules_above(workspace: Workspace, start: Path) -> list[_Rules]:
    """Rules of the folders above `start`, up to the top of the repository, or to the root if there is none."""
    folders: list[Path] = []
    top = None
    if not os.path.lexists(start / ".git"):
        for parent in start.parents:
            folders.append(parent)
            if os.path.lexists(parent / ".git"):
                top = parent
                break
    if top is None:
        folders = [folder for folder in folders if folder.is_relative_to(workspace.root)]
    found = [
        _Rules(rules, prefix=start.relative_to(folder).as_posix() + "/")
        for folder in reversed(folders)
        if (rules := _ignore_file(folder, None))
    ]
    return [] if any(rules.exclude_the_start() for rules in found) else found
