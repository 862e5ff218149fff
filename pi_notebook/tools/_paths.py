"""Which paths a file tool may touch, and how a path is shown to a model.

Everything above `Workspace` is a pure function of its arguments, so both path flavours can be tested anywhere.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePath

from ..errors import ToolDefinitionError, ToolError

_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that would break a line, hide, reorder the text around them, or are no text at all."""
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\", '"': r"\""}
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?$", re.IGNORECASE)


def shown(name: str) -> str:
    """`name` on one line of valid UTF-8: quoted and escaped if it holds newlines, controls or undecodable bytes.

    `unquoted` takes it back, so what a tool shows can be handed to a tool.
    """
    if not _UNSAFE.search(name) and not name.startswith('"'):
        return name

    def escape(match: re.Match[str]) -> str:
        character = match.group()
        if character in _ESCAPES:
            return _ESCAPES[character]
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            return f"\\x{code - 0xDC00:02x}"
        return f"\\u{code:04x}"

    return '"' + re.sub(_UNSAFE.pattern + r'|["\\]', escape, name) + '"'


def unquoted(text: str) -> str:
    """The name that `shown` made `text` from; text that is not quoted comes back as it is."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text

    def plain(match: re.Match[str]) -> str:
        byte, point, other = match.groups()
        if byte:
            code = int(byte, 16)
            return chr(code + 0xDC00) if code >= 0x80 else chr(code)
        if point:
            return chr(int(point, 16))
        return {"n": "\n", "r": "\r", "t": "\t"}.get(other, other)

    return _ESCAPED.sub(plain, text[1:-1])


def is_inside(root: PurePath, path: PurePath) -> bool:
    """Whether `path` is `root` or below it; both absolute and without links and `..` that lead elsewhere.

    Windows paths compare without case; a path with `..` in it is never inside.
    """
    return ".." not in path.parts and path.is_relative_to(root)


def display(root: PurePath, path: PurePath) -> str:
    """`path` as tools print it: relative to `root`, with forward slashes on every system, on one line."""
    if is_inside(root, path):
        return shown(path.relative_to(root).as_posix())
    return shown(path.as_posix())


def windows_problem(path: str) -> str:
    """Why Windows would not open `path` as the plain file that it names; empty if it would.

    Devices answer in every folder (`src/nul.txt`), a colon names a hidden stream of a file, and trailing dots and
    spaces are dropped, so that two spellings would be one file. Source: "Naming Files, Paths,
    and Namespaces" by Microsoft.
    """
    slashed = path.replace("/", "\\")
    if slashed.startswith(("\\\\?\\", "\\\\.\\", "\\??\\")):
        return "device paths are not allowed"
    rest = slashed[2:] if re.match(r"[A-Za-z]:\\", slashed) else slashed
    if re.match(r"[A-Za-z]:", rest):
        return "a drive without a folder depends on that drive's current folder"
    for part in rest.split("\\"):
        if ":" in part:
            return "':' names a hidden stream of a file"
        if part not in ("", ".", "..") and part != part.rstrip(". "):
            return "names cannot end in a dot or a space"
        if _DEVICE.match(part):
            return f"{part!r} is a device"
    return ""


def spellings(path: str) -> Iterator[str]:
    """`path` as models write it, then as macOS may have stored it: decomposed accents, and the narrow space and
    curly apostrophe of screenshot names."""
    seen = set()
    narrow = re.sub(r" (AM|PM)\.", "\u202f\\1.", path, flags=re.IGNORECASE)
    for base in (path, narrow, path.replace("'", "\u2019")):
        for form in (base, unicodedata.normalize("NFC", base), unicodedata.normalize("NFD", base)):
            if form not in seen:
                seen.add(form)
                yield form


_readable: set[Path] = set()


def let_read(path: Path) -> None:
    """Let `read` open this one file outside of any root: a tool of this process wrote it and named it to the model."""
    _readable.add(Path(os.path.realpath(path)))


class Workspace:
    """The folder that file tools may not leave.

    Args:
        root: An existing folder; links in it are resolved once, here.

    Raises:
        ToolDefinitionError: If `root` is not a folder.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(os.path.realpath(Path.cwd() if root is None else Path(root).expanduser()))
        if not self.root.is_dir():
            raise ToolDefinitionError(f"The root of the file tools must be an existing folder: {self.root}.")

    def shown(self, path: PurePath) -> str:
        """`path` as tools print it."""
        return display(self.root, path)

    def named(self, path: PurePath) -> str:
        """`shown`, for a sentence."""
        return "the root folder" if path == self.root else self.shown(path)

    def find(self, path: str, *, reading: bool = False) -> Path:
        """The real path that a model means by `path`: absolute, free of links, inside the root.

        Relative paths start at the root. The file need not exist; where it does not, the spellings of macOS are tried.

        Args:
            reading: Files that were let in by `let_read` are good too.

        Raises:
            ToolError: The path leads out of the root, or can be no path.
        """
        plain = path.removeprefix("@") if path.startswith("@") and not os.path.lexists(self.root / path) else path
        if plain.startswith('"') and not os.path.lexists(self.root / plain):
            plain = unquoted(plain)
        try:
            if "\0" in plain:
                raise ValueError
            os.fsencode(plain)
        except ValueError:
            raise ToolError(f"{shown(path)} holds a character that no file name can have.") from None
        first = None
        for spelling in spellings(plain):
            real = self._real(spelling, path, reading)
            if os.path.lexists(real):
                return real
            first = first or real
        assert first is not None
        return first

    def _real(self, spelling: str, given: str, reading: bool) -> Path:
        if os.name == "nt" and (problem := windows_problem(spelling)):
            raise ToolError(f"{shown(given)} cannot be used: {problem}.")
        try:
            if spelling == "~" or spelling.startswith(("~/", f"~{os.sep}")):
                spelling = os.path.expanduser(spelling)  # noqa: PTH111 - Path raises where there is no home
            real = Path(os.path.realpath(self.root / spelling))
        except (OSError, ValueError) as error:
            raise ToolError(f"{shown(given)} cannot be used as a path: {reason(error)}.") from error
        if is_inside(self.root, real) or (reading and real in _readable):
            return real
        raise ToolError(
            f"{shown(given)} is outside {shown(str(self.root))}, the folder that file tools may not leave "
            f"(links count as where they lead). Use a path inside it."
        )

    def missing(self, path: Path, given: str) -> ToolError:
        """The error for a file that is not there, with the likeliest names beside it."""
        text = f"There is no file {shown(given)}."
        try:
            names = sorted(os.listdir(path.parent))  # noqa: PTH208
        except OSError:
            parent = self.shown(path.parent)
            return ToolError(f"{text} The folder {parent} does not exist either; look with ls or find.")
        close = difflib.get_close_matches(path.name, names[:5_000], n=3, cutoff=0.6)
        if close:
            listed = ", ".join(self.shown(path.parent / name) for name in close)
            return ToolError(f"{text} Similar names: {listed}.")
        return ToolError(f"{text} Look with ls or find.")


_REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.EROFS: "the disk is read-only",
    errno.ELOOP: "a link leads in a circle, or was put there just now",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.ENOENT: "it does not exist",
}


def reason(error: BaseException) -> str:
    """Why the system refused, in words; no paths in it."""
    if isinstance(error, OSError) and error.errno is not None:
        return _REASONS.get(error.errno) or (error.strerror or type(error).__name__)
    return str(error) or type(error).__name__
