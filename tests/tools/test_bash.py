from __future__ import annotations

import asyncio
import os
import signal as signals
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent.single_call import run_tool_call
from pi_notebook.agent.tool import ConsoleText, ToolResult
from pi_notebook.ai import keys
from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.messages import ToolCall
from pi_notebook.ai.model import Model
from pi_notebook.errors import ToolError
from pi_notebook.tools import _process, _shell_output
from pi_notebook.tools._process import shell
from pi_notebook.tools._shell_output import ShellOutput, as_on_screen, plain

from .conftest import Tools

PYTHON = f"'{sys.executable}'"


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert _process._running == set()


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait until `condition()`, for what another process does in its own time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def pid_in(path: Path) -> int:
    assert eventually(lambda: path.exists() and path.read_text().strip().isdigit())
    return int(path.read_text())


# ---- what comes back ------------------------------------------------------------------------------


def test_output_and_errors_come_together(tools: Tools) -> None:
    result = tools.bash.call(command="echo one; echo two >&2; echo three")
    assert result.text == "one\ntwo\nthree"
    assert not result.is_error
    assert (result.details.exit_code, result.details.ended_by, result.details.full_output_path) == (0, "exit", None)
    assert 0 < result.details.seconds < 60


def test_it_runs_in_the_root(tools: Tools, root: Path) -> None:
    assert tools.bash.call(command="pwd -P; echo x > f").text == str(root)
    assert (root / "f").read_text() == "x\n"


def test_a_failing_command_is_an_error_that_holds_its_output(tools: Tools) -> None:
    result = tools.bash.call(command="echo before; exit 3")
    assert result.is_error
    assert result.text == "before\n\n[Exit code 3.]"
    assert result.details.exit_code == 3


def test_a_killed_shell_has_the_code_of_its_signal(tools: Tools) -> None:
    assert tools.bash.call(command="kill -9 $$").text == "(no output)\n\n[Exit code 137.]"


def test_silence_is_named(tools: Tools) -> None:
    assert tools.bash.call(command="true").text == "(no output)"


def test_a_script_of_several_lines(tools: Tools) -> None:
    assert tools.bash.call(command="for i in 1 2\ndo\n  echo $i\ndone\ncat <<END\nx\nEND").text == "1\n2\nx"


@pytest.mark.parametrize("command", ["", "  \n"])
def test_an_empty_command_is_an_error(tools: Tools, command: str) -> None:
    assert tools.bash.call(command=command).text == "The command is empty."


def test_a_nul_character_is_an_error(tools: Tools) -> None:
    assert tools.bash.call(command="echo a\0b").text.startswith("The command could not be started: ")


def test_a_root_that_is_gone_is_an_error(tools: Tools, root: Path) -> None:
    root.rmdir()
    assert tools.bash.call(command="true").text == "The command could not be started: it does not exist."


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_must_be_a_number_above_zero(tools: Tools, timeout: float) -> None:
    assert tools.bash.call(command="true", timeout=timeout).is_error


# ---- never waits for a person ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["cat", "read x; echo \"got '$x'\"", f"{PYTHON} -c 'input()'", "head -c 1 /dev/tty"]
)
def test_there_is_no_standard_input_and_no_terminal(tools: Tools, command: str) -> None:
    result = tools.bash.call(command=command, timeout=30)
    assert result.details.ended_by == "exit"


def test_commands_know_that_nobody_watches(tools: Tools) -> None:
    assert tools.bash.call(command="echo $TERM $PAGER $GIT_TERMINAL_PROMPT").text == "dumb cat 0"


def test_keys_of_providers_are_not_handed_on(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-value")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value")
    monkeypatch.setenv("MY_SETTING", "kept")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    text = tools.bash.call(command="env").text
    assert "secret-value" not in text
    assert "MY_SETTING=kept" in text
    assert "matplotlib_inline" not in text


@pytest.mark.parametrize(
    "command", ["env", "printenv MINE COPY", "echo $MINE$COPY", f"{PYTHON} -c 'import os; print(os.environ)'"]
)
def test_a_key_is_not_handed_on_under_any_name(tools: Tools, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(keys, "_asked", set())
    monkeypatch.setattr(keys, "_seen", set())
    monkeypatch.setenv("MINE", "sk-mine-0123456789")
    monkeypatch.setenv("COPY", "sk-mine-0123456789\n")
    assert "0123456789" in tools.bash.call(command=command).text
    Model("m", "openai-completions", api_key_env="MINE")
    assert "0123456789" not in tools.bash.call(command=command).text


def test_a_placeholder_for_a_key_hides_no_other_variable(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "none")
    monkeypatch.setenv("MY_SETTING", "none")
    assert tools.bash.call(command="echo ${VLLM_API_KEY-hidden} $MY_SETTING").text == "hidden none"


def test_an_environment_can_be_given(root: Path) -> None:
    from pi_notebook.tools import builtin

    (bash,) = builtin("bash", root=root, environment={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "wanted"})
    assert bash.call(command="echo $OPENAI_API_KEY").text == "wanted"


# ---- time and abort -------------------------------------------------------------------------------


def test_a_timeout_is_an_error_that_holds_the_output(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command="echo begun; echo $$ > pid; sleep 600", timeout=0.3)
    assert result.is_error
    assert result.text == "begun\n\n[Timed out after 0.3 s; the command and its process group were killed.]"
    assert result.details.ended_by == "timeout"
    assert not alive(pid_in(root / "pid"))


STUBBORN = """
trap '' TERM INT HUP
(trap '' TERM INT HUP; echo $BASHPID > child; while true; do sleep 600; done) &
echo begun
while true; do sleep 600; done
"""


def test_a_command_that_forks_and_ignores_sigterm_is_killed_whole(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command=STUBBORN, timeout=0.5)
    assert result.text.startswith("begun\n\n[Timed out after 0.5 s;")
    assert result.details.exit_code == 137
    assert result.details.seconds < 20
    child = pid_in(root / "child")
    assert eventually(lambda: not alive(child))


def test_a_child_that_ignores_sigterm_is_killed_though_its_shell_obeyed(tools: Tools, root: Path) -> None:
    command = "(trap '' TERM; echo $BASHPID > child; while true; do sleep 600; done) & wait"
    result = tools.bash.call(command=command, timeout=0.5)
    assert result.details.ended_by == "timeout"
    child = pid_in(root / "child")
    assert eventually(lambda: not alive(child))


def test_a_process_may_clean_up_on_sigterm(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command="trap 'echo bye; exit 7' TERM; echo on; sleep 600 & wait", timeout=0.3)
    assert result.text.startswith("on\nbye\n\n[Timed out")
    assert result.details.exit_code == 7


def test_a_process_that_left_the_group_does_not_hold_it_up(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command="setsid bash -c 'echo $$ > child; exec sleep 600' & sleep 600", timeout=0.5)
    child = pid_in(root / "child")
    try:
        assert result.details.ended_by == "timeout"
        assert result.details.seconds < 20
    finally:
        os.kill(child, signals.SIGKILL)


def test_what_runs_in_the_background_is_left_alone(tools: Tools, root: Path) -> None:
    command = "(echo $BASHPID > child; sleep 0.6; echo later; sleep 0.3; touch done; exec sleep 600) & echo started"
    result = tools.bash.call(command=command)
    child = pid_in(root / "child")
    try:
        assert result.text == (
            "started\n\n[Something that it started in the background still runs; its further output is not shown.]"
        )
        assert (result.is_error, result.details.background) == (False, True)
        assert eventually((root / "done").exists)  # its later output did not break its pipe
        assert alive(child)
    finally:
        os.kill(child, signals.SIGKILL)


def test_a_background_that_never_stops_talking_does_not_hold_it_up(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command="yes & echo $! > child; echo started")
    child = pid_in(root / "child")
    try:
        assert result.details.background
        assert result.details.seconds < 20
    finally:
        os.kill(child, signals.SIGKILL)
        Path(result.details.full_output_path).unlink()


def test_a_command_that_closes_its_output_is_still_waited_for(tools: Tools, root: Path) -> None:
    result = tools.bash.call(command="exec >&- 2>&-; sleep 0.3; touch done; exit 4")
    assert (root / "done").exists()
    assert result.details.exit_code == 4


def aborted_run(tools: Tools, command: str, begun: Path, *, cancel: bool = False) -> tuple[Any, float]:
    """The result of a command that is aborted (or whose task is cancelled) once it has made `begun`, and how long
    ending took."""
    controller = AbortController()
    ended_after: list[float] = []

    async def run() -> Any:
        call = ToolCall("1", "bash", {"command": command})
        task = asyncio.ensure_future(
            tools.bash.execute("1", call.arguments, controller.signal, None)
            if cancel
            else run_tool_call(call, [tools.bash], signal=controller.signal, ask=False)
        )
        while not begun.exists():
            await asyncio.sleep(0.01)
        started = time.monotonic()
        if cancel:
            task.cancel()
        else:
            controller.abort()
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            ended_after.append(time.monotonic() - started)

    return asyncio.run(run()), ended_after[0]


def test_an_abort_kills_the_group_and_keeps_the_output(tools: Tools, root: Path) -> None:
    result, _ = aborted_run(tools, "echo half; echo $$ > pid; touch begun; sleep 600", root / "begun")
    assert result.is_error
    assert result.text == "half\n\n[Aborted; the command and its process group were killed.]"
    assert result.details.ended_by == "aborted"
    assert not alive(pid_in(root / "pid"))


def test_an_abort_ends_also_what_ignores_signals(tools: Tools, root: Path) -> None:
    result, seconds = aborted_run(tools, STUBBORN.replace("echo begun", "touch begun"), root / "begun")
    assert result.is_error
    assert seconds < 10
    child = pid_in(root / "child")
    assert eventually(lambda: not alive(child))


def test_a_cancelled_call_leaves_no_process(tools: Tools, root: Path) -> None:
    result, _ = aborted_run(tools, "echo $$ > pid; touch begun; sleep 600", root / "begun", cancel=True)
    assert result is None
    pid = pid_in(root / "pid")
    assert eventually(lambda: not alive(pid))
    assert eventually(lambda: not _process._running)


def test_it_works_on_a_loop_in_another_thread_and_several_at_once(tools: Tools) -> None:
    results: list[ToolResult] = []

    def other_thread() -> None:
        async def run() -> None:
            calls = [tools.bash.execute(str(n), {"command": f"echo {n}; exit {n}"}, None, None) for n in range(8)]
            results.extend(await asyncio.gather(*calls))

        asyncio.run(run())

    thread = threading.Thread(target=other_thread, daemon=True)
    thread.start()
    thread.join(60)
    assert [result.details.exit_code for result in results] == list(range(8))


# ---- live output ----------------------------------------------------------------------------------


def updates_of(tools: Tools, command: str) -> list[str]:
    seen: list[ToolResult] = []
    asyncio.run(tools.bash.execute("1", {"command": command}, None, seen.append))
    assert all(isinstance(update.details, ConsoleText) for update in seen)
    return [update.details.text for update in seen]


def test_output_is_shown_while_it_comes(tools: Tools, root: Path) -> None:
    os.mkfifo(root / "go")
    seen: list[str] = []

    def on_update(update: ToolResult) -> None:
        seen.append(update.details.text)
        if len(seen) == 1:
            (root / "go").write_text("on\n")  # the command waits for this: so it was still running

    asyncio.run(tools.bash.execute("1", {"command": "echo first; read x < go; echo $x"}, None, on_update))
    assert "".join(seen) == "first\non\n"
    assert len(seen) == 2


def test_a_flood_is_thinned_out(tools: Tools) -> None:
    pieces = updates_of(tools, "yes 'some text that is long' | head -n 2000000")
    assert sum(map(len, pieces)) < 40 * 21_000
    assert "characters …]" in "".join(pieces)
    assert pieces[-1].endswith("some text that is long\n")


@given(st.lists(st.sampled_from([b"\x1b", b"[", b"3", b"1", b"m", b"a", b"\n", b"\r", "é".encode(), b"]0;t", b"\x07"])))
def test_pieces_joined_do_not_depend_on_where_output_was_split(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    shown: list[str] = []
    output = ShellOutput(shown.append)
    output._shown_at = -1e9
    for byte in whole:
        output.feed(bytes([byte]))
        output._shown_at = -1e9
        output.tick()
    output.close()
    once: list[str] = []
    output = ShellOutput(once.append)
    output.feed(whole)
    output.close()
    assert "".join(shown) == "".join(once) == plain(whole.decode())


# ---- long and odd output --------------------------------------------------------------------------


def test_the_last_two_thousand_lines_and_the_whole_in_a_file(tools: Tools) -> None:
    result = tools.bash.call(command="seq 5000")
    body, _, note = result.text.partition("\n\n")
    assert body == "\n".join(map(str, range(3_001, 5_001)))
    path = Path(result.details.full_output_path)
    assert note == f"[Lines 3,001-5,000 of 5,000; 13.6 KB before them are left out. The whole is in {path}.]"
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 5_001))
    assert path.stat().st_mode & 0o077 == 0
    assert tools.read.call(path=str(path), offset=7, limit=1).text.startswith("7\n\n[Lines 7-7 of 5,000.")
    assert tools.grep.call(path=str(path), pattern="^4999$").text.endswith(":4999: 4999")
    path.unlink()


def test_fifty_kilobytes_in_whole_lines_and_characters(tools: Tools) -> None:
    result = tools.bash.call(command=f"{PYTHON} -c \"print(('é' * 600 + chr(10)) * 100, end='')\"")
    body, _, note = result.text.partition("\n\n")
    assert set(body.split("\n")) == {"é" * 600}
    assert len(body.encode()) <= 50 * 1024
    assert note.startswith("[Lines 59-100 of 100; 68.0 KB before them are left out.")
    Path(result.details.full_output_path).unlink()


def test_one_long_line_is_cut_at_a_character(tools: Tools) -> None:
    result = tools.bash.call(command=f"{PYTHON} -c \"print('é' * 300000, end='')\"")
    body, _, note = result.text.partition("\n\n")
    assert body == "é" * 25_600
    assert note.startswith("[The end of line 1; 535.9 KB before it are left out.")
    Path(result.details.full_output_path).unlink()


def test_bytes_that_are_no_text_are_shown_as_far_as_they_can(tools: Tools) -> None:
    assert tools.bash.call(command=r"printf 'caf\xe9\0\x01 \x1b[31mred\x1b[0m\n'").text == "caf\ufffd red"


def test_lines_that_are_written_over_look_as_on_a_screen(tools: Tools) -> None:
    assert tools.bash.call(command=r"printf ' 10%%\r100%%\r\ndone\r\n'").text == "100%\ndone"
    assert as_on_screen("abc\rX\n") == "Xbc\n"


def test_long_progress_that_is_short_on_a_screen_needs_no_file(tools: Tools) -> None:
    result = tools.bash.call(command="for i in $(seq 20000); do printf '\\r%s of 20000' $i; done")
    assert result.text == "20000 of 20000"
    assert result.details.full_output_path is None


def test_a_full_disk_for_the_file_is_named(small_disk: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shell_output.tempfile, "tempdir", str(small_disk))
    result = tools.bash.call(command="seq 100000")
    assert not result.is_error
    assert result.text.endswith("left out. The whole could not be kept: No space left on device.]")
    assert list(small_disk.iterdir()) == []


def test_the_file_has_an_upper_size(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shell_output, "MAX_FILE", 100_000)
    result = tools.bash.call(command="seq 100000")
    path = Path(result.details.full_output_path)
    assert path.stat().st_size == 100_000
    assert result.text.endswith(f"left out. The first 97.7 KB are in {path}.]")
    path.unlink()


# ---- which shell ----------------------------------------------------------------------------------


def test_on_windows_a_bash_that_sees_the_same_paths_is_needed() -> None:
    found = {"bash": "C:\\Program Files\\Git\\usr\\bin\\bash.exe"}
    assert shell(True, found.get) == ["C:\\Program Files\\Git\\usr\\bin\\bash.exe", "-c"]
    for only in ({}, {"bash": "C:\\Windows\\System32\\bash.exe"}):
        with pytest.raises(ToolError, match="Install Git for Windows"):
            shell(True, only.get)


def test_elsewhere_sh_will_do() -> None:
    assert shell(False, {"sh": "/bin/sh"}.get) == ["/bin/sh", "-c"]
    assert shell(False, {"sh": "/bin/sh", "bash": "/bin/bash"}.get) == ["/bin/bash", "-c"]
    with pytest.raises(ToolError, match="neither bash nor sh"):
        shell(False, {}.get)
