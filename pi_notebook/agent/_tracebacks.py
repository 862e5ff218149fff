"""Where in the user's code an exception came from: one line for the model, a short traceback for the person."""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARIES = tuple(
    {path + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))}
)
_LIBRARY_PARTS = ("site-packages", "dist-packages")
_OTHER_LOOP = re.compile(r"different (event )?loop|bound to a different|attached to a different|Event loop is closed")
_OTHER_LOOP_ADVICE = (
    "An object it uses was made on another event loop (such as the notebook's own), and an `async def` tool runs on "
    "the agent's loop: make the object inside the tool, or make the tool a plain `def`."
)

_cell_names: list[Callable[[str], str | None]] = []


@dataclass(slots=True, frozen=True)
class Frame:
    """One line of somebody's code."""

    filename: str
    line: int
    function: str

    @property
    def where(self) -> str:
        """`Cell In[3], line 2` or `analysis.py, line 10`."""
        return f"{source_name(self.filename)}, line {self.line}"

    @property
    def code(self) -> str:
        return linecache.getline(self.filename, self.line).strip()


def name_cells(namer: Callable[[str], str | None]) -> Callable[[], None]:
    """Let a notebook name the files that its cells are compiled as; returns a function that forgets it.

    Args:
        namer: file name -> `Cell In[3]`; None if it is no cell of this notebook.
    """
    _cell_names.append(namer)
    return lambda: _cell_names.remove(namer)


def source_name(filename: str) -> str:
    """A file name as people know it."""
    for namer in _cell_names:
        if name := namer(filename):
            return name
    if found := re.search(r"<ipython-input-(\d+)-", filename):
        return f"Cell In[{found[1]}]"
    if re.search(r"ipykernel_\d+[/\\]\d+\.py$", filename):
        return "a cell"
    return Path(filename).name


def user_frames(error: BaseException) -> list[Frame]:
    """The frames of the user's own code, outermost first; those of libraries if there are no others.

    Frames of this package are left out, and so is what called into it.
    """
    given: Sequence[Frame] | None = getattr(error, "_pi_notebook_frames", None)
    if given is not None:
        return list(given)
    frames = [
        Frame(entry.filename, entry.lineno or 0, entry.name)
        for entry in traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    ]
    ours = [number for number, frame in enumerate(frames) if frame.filename.startswith(_PACKAGE)]
    inner = frames[ours[-1] + 1 :] if ours else frames
    users = [frame for frame in inner or frames if not _is_library(frame.filename)]
    if not users and error.__cause__ is not None:
        return user_frames(error.__cause__)
    return users or inner


def _is_library(filename: str) -> bool:
    """Whether it is code of this package, of an installed one, or of Python."""
    if filename.startswith((_PACKAGE, "<frozen ")) or any(part in filename for part in _LIBRARY_PARTS):
        return True
    return filename.startswith(_LIBRARIES)


def remember_frames(error: BaseException) -> None:
    """Keep the frames on the exception itself, which a traceback does not survive on its way between processes."""
    try:
        error._pi_notebook_frames = user_frames(error)  # type: ignore[attr-defined]
    except AttributeError:  # an exception with slots
        pass


def describe_exception(error: BaseException) -> str:
    """For a model: the exception's type and text, and the line in the user's code that raised it."""
    text = exception_text(error)
    frames = user_frames(error)
    if frames:
        frame = frames[-1]
        code = f": {frame.code}" if frame.code else ""
        text += f"\nat {frame.where}, in {frame.function}{code}"
    return text


def exception_text(error: BaseException) -> str:
    """`ValueError: text`, the members of a group and the notes after it."""
    try:
        text = str(error)
    except Exception:
        text = "<its text cannot be shown>"
    lines = [f"{type(error).__name__}: {text}" if text else type(error).__name__]
    if isinstance(error, BaseExceptionGroup):
        lines += [f"- {exception_text(member)}" for member in error.exceptions]
    lines += [str(note) for note in getattr(error, "__notes__", ())]
    if isinstance(error, RuntimeError | ValueError) and _OTHER_LOOP.search(text):
        lines.append(_OTHER_LOOP_ADVICE)
    return "\n".join(lines)


def short_traceback(error: BaseException) -> str:
    """For a person: the user's own frames with their lines, then type and text. Plain text, to be escaped."""
    lines = []
    for frame in user_frames(error):
        lines.append(f"{frame.where}, in {frame.function}")
        if frame.code:
            lines.append(f"    {frame.code}")
    lines.append(exception_text(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and not hasattr(error, "_pi_notebook_frames"):
        lines.append(f"caused by {exception_text(cause)}")
    return "\n".join(lines)
