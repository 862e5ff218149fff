"""The tool `bash`."""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..agent._cut import MAX_BYTES, MAX_LINES
from ..agent.tool import ConsoleText, OnUpdate, Tool, ToolResult
from ..agent.workers import run_in_worker
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent
from ..errors import ToolError
from ._paths import Workspace, let_read
from ._process import Ended, run_command
from ._shell_output import ShellOutput
from ._thread_tool import ThreadTool

DESCRIPTION = (
    "Run a command with bash in the root folder. Standard output and error come back together, the last "
    f"{MAX_LINES:,} lines or {MAX_BYTES // 1024} KB; longer output is kept in a file that is named. There is no "
    "standard input, so nothing can be asked or typed. Not for reading, searching or changing files (read, grep, find, "
    "ls, edit, write), nor for Python that needs the notebook's variables (python)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "Command, or script of several lines, for bash."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds after which it is killed with all that it started; none if left out.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}
UNATTENDED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONUNBUFFERED": "1",
}
"""Set for every command: nobody sees colours, turns pages or answers a prompt, and output should come as it is made."""


@dataclass(frozen=True, slots=True)
class BashDetails:
    """`details` of a command.

    Args:
        exit_code: Of the shell; 128 + n if signal n ended it; None if it could not be ended.
        seconds: Wall time.
        ended_by: `exit`, `timeout` or `aborted`.
        full_output_path: File with all output, where the result holds only the end of it.
        background: Something that the command started was left running.
    """

    exit_code: int | None
    seconds: float
    ended_by: str
    full_output_path: str | None = None
    background: bool = False


def bash_tool(workspace: Workspace, environment: Mapping[str, str] | None = None) -> Tool:
    """A tool that runs commands in the root of `workspace`. It is not confined to that folder.

    Args:
        environment: Variables of the commands; if None this process's own at the time of the call, without the keys
            of models.
    """

    async def execute(
        tool_call_id: str, params: dict[str, Any], signal: AbortSignal | None, on_update: OnUpdate | None
    ) -> ToolResult:
        watch = signal or AbortSignal()
        left = threading.Event()
        variables = {**(own_environment() if environment is None else environment), **UNATTENDED}
        timeout = params.get("timeout")
        try:
            return await run_in_worker(
                lambda: _bash(workspace, params["command"], timeout, variables, watch, left, on_update)
            )
        except asyncio.CancelledError:
            left.set()
            raise

    return ThreadTool("bash", DESCRIPTION, PARAMETERS, execute, approval=True)


def own_environment() -> dict[str, str]:
    """This process's variables without the keys of models, under whatever name: what a command prints is sent to a
    model and saved in the notebook. The kernel's own drawing backend is left out too, since it works nowhere else."""
    from ..ai.keys import key_variables, known_keys

    names, keys = key_variables(), known_keys()
    variables = {name: value for name, value in os.environ.items() if name not in names and value.strip() not in keys}
    if variables.get("MPLBACKEND", "").startswith("module://"):
        del variables["MPLBACKEND"]
    return variables


def _bash(
    workspace: Workspace,
    command: str,
    timeout: float | None,
    variables: Mapping[str, str],
    signal: AbortSignal,
    left: threading.Event,
    on_update: OnUpdate | None,
) -> ToolResult:
    if not command.strip():
        raise ToolError("The command is empty.")
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise ToolError(f"timeout must be a number of seconds above 0, not {timeout}.")
    signal.raise_if_aborted()
    show = None if on_update is None else lambda text: on_update(ToolResult((), ConsoleText(text)))
    output = ShellOutput(show)
    ended = run_command(
        command,
        workspace.root,
        variables,
        timeout,
        lambda: signal.aborted or left.is_set(),
        output.feed,
        output.tick,
    )
    output.close()
    text, cut_note = output.end()
    if output.path is not None:
        let_read(output.path)
    notes = [note for note in (cut_note, *_how_it_ended(ended, timeout)) if note]
    content = text.rstrip("\n") or "(no output)"
    if notes:
        content += "\n\n[" + " ".join(notes) + "]"
    path = None if output.path is None else str(output.path)
    details = BashDetails(ended.exit_code, round(ended.seconds, 3), ended.why, path, ended.background)
    return ToolResult([TextContent(content)], details, is_error=ended.why != "exit" or ended.exit_code != 0)


def _how_it_ended(ended: Ended, timeout: float | None) -> list[str]:
    notes = []
    if ended.why == "timeout":
        notes.append(f"Timed out after {timeout:g} s; the command and its process group were killed.")
    elif ended.why == "aborted":
        notes.append("Aborted; the command and its process group were killed.")
    elif ended.exit_code:
        notes.append(f"Exit code {ended.exit_code}.")
    if ended.exit_code is None:
        notes.append("It did not end even when killed.")
    if ended.background:
        notes.append("Something that it started in the background still runs; its further output is not shown.")
    return notes
