"""Running a shell command that can always be ended, and never waits for a person."""

from __future__ import annotations

import atexit
import os
import queue
import shutil
import signal as signals
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import ToolError
from ._paths import reason

TICK = 0.05
"""Seconds between two looks at a quiet command."""
DRAIN = 0.25
"""Seconds of silence after the shell has ended until what it left in the background is let go."""
MAX_DRAIN = 1.0
"""Seconds after the shell has ended for a background that is never silent."""
GRACE: Mapping[str, float] = {"aborted": 0.12, "timeout": 1.0}
"""Seconds from SIGTERM to SIGKILL. A stopped run waits no more than 0.3 s for a tool."""
REAP = 1.0
_CHUNK = 1 << 16

_running: set[int] = set()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Args:
        exit_code: Of the shell; 128 + n if signal n killed it; None if it could not be ended.
        why: What ended it.
        seconds: Wall time.
        background: Something that it started still holds its output open.
    """

    exit_code: int | None
    why: Literal["exit", "timeout", "aborted"]
    seconds: float
    background: bool


def shell(windows: bool = os.name == "nt", which: Callable[[str], str | None] = shutil.which) -> list[str]:
    """The command that runs a script given as its next argument.

    Raises:
        ToolError: There is no shell. On Windows that is a bash other than the one of WSL, which sees other paths.
    """
    if windows:
        git = which("git")
        beside = str(Path(git).parent.parent / "bin" / "bash.exe") if git else ""
        found = beside if beside and Path(beside).exists() else which("bash")
        if found and "system32" not in found.lower():
            return [found, "-c"]
        raise ToolError("There is no bash on this system. Install Git for Windows, or use python instead.")
    found = which("bash") or which("sh")
    if not found:
        raise ToolError("There is neither bash nor sh on this system; use python instead.")
    return [found, "-c"]


def run_command(
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None,
    stopped: Callable[[], bool],
    feed: Callable[[bytes], None],
    tick: Callable[[], None] = lambda: None,
) -> Ended:
    """Run `command` in a session of its own, without standard input or terminal, and wait until it has ended.

    Blocks its thread. When `stopped()` becomes true, or `timeout` seconds have passed, the whole process group gets
    SIGTERM and soon after SIGKILL. A process that left the group (setsid) is not found, but does not hold this up.

    Args:
        feed: Called on this thread with each piece of output, standard error mixed in as it came. What processes in
            the background write later is read and dropped, so that they live on.
        tick: Called now and then on this thread.
    """
    started = time.monotonic()
    process = _start(command, folder, environment)
    pieces = _read_in_background(process)
    run = _Run(process, started, timeout)
    open_ = True
    try:
        while True:
            run.look(stopped)
            if open_:
                try:
                    piece = pieces.get(timeout=TICK)
                except queue.Empty:
                    pass
                else:
                    open_ = piece is not None
                    if piece is not None:
                        run.heard = time.monotonic()
                        feed(piece)
            else:
                time.sleep(TICK / 5)
            tick()
            if run.over(open_):
                return run.ended(background=open_ and run.why == "exit")
    finally:
        run.close()
        _drop_the_rest(pieces)


def _start(command: str, folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    new_group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    try:
        process = subprocess.Popen(
            [*shell(), command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=os.name != "nt",
            creationflags=new_group,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"The command could not be started: {reason(error)}.") from error
    with _lock:
        _running.add(process.pid)
    return process


class _Pieces(queue.Queue["bytes | None"]):
    """What was read so far; None at the end. `dropping`: nobody takes any more."""

    dropping = False


def _read_in_background(process: subprocess.Popen[bytes]) -> _Pieces:
    pieces = _Pieces(maxsize=64)

    def read() -> None:
        assert process.stdout is not None
        with process.stdout as out:
            descriptor = out.fileno()
            while True:
                try:
                    data = os.read(descriptor, _CHUNK)
                except OSError:
                    data = b""
                if not pieces.dropping:
                    pieces.put(data or None)
                if not data:
                    return

    threading.Thread(target=read, name=f"pi_notebook-bash-{process.pid}", daemon=True).start()
    return pieces


def _drop_the_rest(pieces: _Pieces) -> None:
    pieces.dropping = True
    while not pieces.empty():  # lets a reader that waits for room go on
        try:
            pieces.get_nowait()
        except queue.Empty:
            return


class _Run:
    """The life of one process: whether it is to end, and whether it has."""

    def __init__(self, process: subprocess.Popen[bytes], started: float, timeout: float | None) -> None:
        self.process = process
        self.started = self.heard = started
        self.timeout = timeout
        self.why: Literal["exit", "timeout", "aborted"] = "exit"
        self.kill_at: float | None = None
        self.killed_at: float | None = None
        self.ended_at: float | None = None

    def look(self, stopped: Callable[[], bool]) -> None:
        """Send what signals are due."""
        now = time.monotonic()
        if self.why == "exit":
            if stopped():
                self.why = "aborted"
            elif self.timeout is not None and now - self.started >= self.timeout:
                self.why = "timeout"
            else:
                return
            end_group(self.process, hard=False)
            self.kill_at = now + GRACE[self.why]
        elif self.killed_at is None and self.kill_at is not None and now >= self.kill_at:
            end_group(self.process, hard=True)
            self.killed_at = now

    def over(self, open_: bool) -> bool:
        now = time.monotonic()
        ended = self.process.poll() is not None
        if ended and self.ended_at is None:
            self.ended_at = now
        if self.why == "exit" and self.ended_at is not None:
            return not open_ or now - self.heard >= DRAIN or now - self.ended_at >= MAX_DRAIN
        if ended and not open_ and not group_exists(self.process):
            return True
        if self.killed_at is None:
            return False
        return (ended and (not open_ or now - self.killed_at >= TICK)) or now - self.killed_at >= REAP

    def ended(self, background: bool) -> Ended:
        code = self.process.poll()
        if code is not None and code < 0:
            code = 128 - code
        return Ended(code, self.why, time.monotonic() - self.started, background)

    def close(self) -> None:
        """If this thread leaves early, by an exception, nothing stays behind."""
        if self.process.poll() is None:
            end_group(self.process, hard=True)
        with _lock:
            _running.discard(self.process.pid)


def end_group(process: subprocess.Popen[bytes], *, hard: bool) -> None:
    """SIGTERM, or SIGKILL, to the process group that `process` leads."""
    if sys.platform == "win32":
        command = ["taskkill", "/T", "/PID", str(process.pid), *(["/F"] if hard else [])]
        subprocess.run(command, capture_output=True, check=False, timeout=10)
        return
    try:
        os.killpg(process.pid, signals.SIGKILL if hard else signals.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError:  # a member runs as someone else; the others were sent it
        pass


def group_exists(process: subprocess.Popen[bytes]) -> bool:
    """Whether anything of the group still runs."""
    if sys.platform == "win32":
        return process.poll() is None
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@atexit.register
def _end_all() -> None:
    """A kernel that shuts down leaves no command running."""
    if sys.platform != "win32":
        for pid in list(_running):
            try:
                os.killpg(pid, signals.SIGKILL)
            except OSError:
                pass
