from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent.execution import ToolCalls
from pi_notebook.agent.hooks import AgentContext
from pi_notebook.ai.abort import AbortController, AbortSignal
from pi_notebook.ai.messages import AssistantMessage, ToolCall
from pi_notebook.tools import _edit, _files
from pi_notebook.tools._edit import EditDetails
from pi_notebook.tools._filetype import is_binary

from .conftest import Tools, names


def edit(tools: Tools, path: str, *pairs: tuple[str, str]) -> Any:
    return tools.edit.call(path=path, edits=[{"oldText": old, "newText": new} for old, new in pairs])


def test_an_edit_changes_the_file_and_shows_the_diff(tools: Tools, root: Path) -> None:
    (root / "a.py").write_text("a = 1\nb = 2\n")
    result = edit(tools, "a.py", ("b = 2", "b = 3"))
    assert (root / "a.py").read_text() == "a = 1\nb = 3\n"
    assert result.text == "Changed a.py: 1 edit made, the first at line 2."
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
    assert result.details == EditDetails("a.py", diff, 1, 2)


def test_a_tolerant_edit_says_so(tools: Tools, root: Path) -> None:
    (root / "a.py").write_text("x  =  1\ny = 2\n")
    result = edit(tools, "a.py", ("y = 2", "y = 3"), ("x = 1", "x = 4"))
    assert result.text == (
        "Changed a.py: 2 edits made, the first at line 1. "
        "Found only by ignoring differences in white space, so check the result: edits[1]."
    )
    assert result.details.tolerant == (1,)


def test_all_or_nothing(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("one two\n")
    result = edit(tools, "a.txt", ("one", "1"), ("three", "3"))
    assert result.is_error
    assert (root / "a.txt").read_text() == "one two\n"
    assert names(root) == ["a.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o664, 0o4755])
def test_the_mode_is_kept(tools: Tools, root: Path, mode: int) -> None:
    (root / "run.sh").write_text("echo a\n")
    (root / "run.sh").chmod(mode)
    edit(tools, "run.sh", ("a", "b"))
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == mode


def test_extended_attributes_are_kept(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("a")
    os.setxattr(root / "a.txt", "user.note", b"mine")
    edit(tools, "a.txt", ("a", "b"))
    assert os.getxattr(root / "a.txt", "user.note") == b"mine"


def test_the_owner_is_kept(as_somebody_else: Any) -> None:
    folder, _ = as_somebody_else
    (folder / "f").write_text("a")
    if os.geteuid() == 0:
        os.chown(folder / "f", 65534, 65534)
    before = (folder / "f").stat()
    edit(Tools(folder), "f", ("a", "b"))
    after = (folder / "f").stat()
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", b"\xef\xbb\xbfa\r\nx\r\ny\r\n"),
        (b"a\r\nb", b"a\r\nx\r\ny"),
        (b"caf\xe9\xff\nb\n", b"caf\xe9\xff\nx\ny\n"),
        ("\ufeffa\nb\n".encode("utf-16-le"), "\ufeffa\nx\ny\n".encode("utf-16-le")),
        ("\ufeffa\r\nb\r\n".encode("utf-16-be"), "\ufeffa\r\nx\r\ny\r\n".encode("utf-16-be")),
    ],
)
def test_mark_endings_and_undecodable_bytes_are_kept(tools: Tools, root: Path, before: bytes, after: bytes) -> None:
    (root / "f").write_bytes(before)
    result = edit(tools, "f", ("b", "x\ny"))
    assert not result.is_error, result.text
    assert (root / "f").read_bytes() == after
    result.details.diff.encode()


@given(st.binary(max_size=80).filter(lambda data: not is_binary(b"text " * 40 + data)))
def test_decoding_loses_no_byte(data: bytes) -> None:
    data = b"text " * 40 + data
    text, encoding, mark = _edit._decoded(data, "f", "f")
    assert mark + text.encode(encoding, "surrogateescape") == data


def test_a_link_stays_a_link(tools: Tools, root: Path) -> None:
    (root / "real").write_text("a")
    (root / "link").symlink_to("real")
    result = edit(tools, "link", ("a", "b"))
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "b"
    assert result.details.path == "real"


def test_hard_links_stay_one_file(tools: Tools, root: Path) -> None:
    (root / "one").write_text("a")
    os.link(root / "one", root / "two")
    edit(tools, "one", ("a", "longer than before"))
    edit(tools, "two", ("longer than before", "b"))
    assert (root / "one").read_text() == (root / "two").read_text() == "b"
    assert (root / "one").stat().st_nlink == 2
    assert names(root) == ["one", "two"]


def test_a_single_edit_without_the_list_is_taken(tools: Tools, root: Path) -> None:
    (root / "f").write_text("a")
    assert not tools.edit.call(path="f", oldText="a", newText="b").is_error
    assert (root / "f").read_text() == "b"


def test_a_missing_file_is_an_error(tools: Tools) -> None:
    assert edit(tools, "no.txt", ("a", "b")).text == "There is no file no.txt. Look with ls or find."


def test_a_binary_file_is_refused(tools: Tools, root: Path) -> None:
    (root / "f.png").write_bytes(b"\x89PNG\r\n\x1a\nabc")
    (root / "g").write_bytes(b"a\0b")
    assert (
        edit(tools, "f.png", ("a", "b")).text == "f.png is binary (image/png, 11 bytes); edit changes text files only."
    )
    assert edit(tools, "g", ("a", "b")).is_error


def test_a_huge_file_is_refused(tools: Tools, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.write(b"text\n")
        file.truncate(1 << 30)
    result = edit(tools, "huge", ("text", "b"))
    assert result.text == ("huge is 1.0 GB, more than the 50.0 MB this tool takes. Use bash or python for it.")


def test_a_lone_surrogate_is_refused(tools: Tools, root: Path) -> None:
    (root / "f").write_text("a")
    assert "no character" in edit(tools, "f", ("a", "\ud800")).text
    assert (root / "f").read_text() == "a"


def test_edits_outside_the_root_are_refused(tools: Tools, root: Path) -> None:
    (root.parent / "f").write_text("a")
    assert "outside" in edit(tools, "../f", ("a", "b")).text
    assert (root.parent / "f").read_text() == "a"


@pytest.mark.parametrize("how", ["replaced", "rewritten", "removed", "link"])
def test_a_file_changed_between_read_and_write_is_left_alone(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (root / "f").write_text("a\n")
    (root.parent / "secret").write_text("a\n")
    apply = _edit.apply_edits

    def meanwhile(*args: Any) -> Any:
        if how == "rewritten":
            (root / "f").write_text("a\nby someone else\n")
        else:
            (root / "f").unlink()
        if how == "replaced":
            (root / "g").write_text("a\n")
            (root / "g").rename(root / "f")
        if how == "link":
            (root / "f").symlink_to(root.parent / "secret")
        return apply(*args)

    monkeypatch.setattr(_edit, "apply_edits", meanwhile)
    result = edit(tools, "f", ("a", "b"))
    assert result.is_error
    assert result.text == "f was changed by someone else in the meantime. Nothing was written; read it again."
    assert (root.parent / "secret").read_text() == "a\n"
    assert (root / "f").read_text() if how != "removed" else True
    assert not [name for name in names(root) if name.endswith(".tmp")]


def run_batch(tools: list[Any], calls: list[ToolCall]) -> list[Any]:
    """The results of one parallel batch, as the loop runs it."""

    async def run() -> list[Any]:
        async def emit(event: Any) -> None: ...

        batch = ToolCalls(AgentContext(tools=tools), AssistantMessage(calls), emit, AbortSignal(), ask=False)
        return (await batch.run(calls)).messages

    return asyncio.run(run())


@pytest.mark.parametrize("through", ["path", "symbolic link", "hard link"])
def test_edits_of_one_file_in_a_parallel_batch_all_arrive(tools: Tools, root: Path, through: str) -> None:
    (root / "f").write_text("".join(f"<{n}>\n" for n in range(30)))
    names = ["f"] * 30
    if through == "symbolic link":
        (root / "sub").mkdir()
        for n in range(1, 30):
            (root / "sub" / f"l{n}").symlink_to("../f")
        names = ["f", *(f"sub/l{n}" for n in range(1, 30))]
    if through == "hard link":
        for n in range(1, 30):
            os.link(root / "f", root / f"h{n}")
        names = ["f", *(f"h{n}" for n in range(1, 30))]
    calls = [
        ToolCall(str(n), "edit", {"path": names[n], "edits": [{"oldText": f"<{n}>", "newText": f"done {n}"}]})
        for n in range(30)
    ]
    messages = run_batch([tools.edit], calls)
    assert [message.is_error for message in messages] == [False] * 30, [m.text for m in messages if m.is_error]
    assert (root / "f").read_text() == "".join(f"done {n}\n" for n in range(30))


def test_writes_and_edits_of_one_file_run_in_the_order_of_the_calls(tools: Tools, root: Path) -> None:
    calls = [
        ToolCall("1", "write", {"path": "new/f", "content": "a"}),
        ToolCall("2", "edit", {"path": "new/f", "edits": [{"oldText": "a", "newText": "b"}]}),
        ToolCall("3", "write", {"path": "./new/../new/f", "content": "c"}),
        ToolCall("4", "edit", {"path": "new/f", "edits": [{"oldText": "c", "newText": "d"}]}),
    ]
    messages = run_batch([tools.edit, tools.write], calls)
    assert [message.is_error for message in messages] == [False] * 4, [m.text for m in messages]
    assert (root / "new" / "f").read_text() == "d"


def test_an_aborted_edit_changes_nothing(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "f").write_text("a")
    controller = AbortController()
    apply = _edit.apply_edits

    def abort_first(*args: Any) -> Any:
        controller.abort()
        return apply(*args)

    monkeypatch.setattr(_edit, "apply_edits", abort_first)
    arguments = {"path": "f", "edits": [{"oldText": "a", "newText": "b"}]}
    with pytest.raises(Exception, match="aborted"):
        asyncio.run(tools.edit.execute("1", arguments, controller.signal, None))
    assert (root / "f").read_text() == "a"


def test_the_loop_goes_on_while_a_file_is_edited(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "f").write_text("a")
    gate = threading.Event()
    apply = _edit.apply_edits
    monkeypatch.setattr(_edit, "apply_edits", lambda *args: (gate.wait(30), apply(*args))[1])

    async def run() -> Any:
        task = asyncio.ensure_future(
            tools.edit.execute("1", {"path": "f", "edits": [{"oldText": "a", "newText": "b"}]}, None, None)
        )
        await asyncio.sleep(0)
        gate.set()  # only reached if the edit does not hold the loop
        return await task

    assert not asyncio.run(run()).is_error


# ---- disks that are full, and files that cannot be changed ----------------------------------------


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    tools = Tools(small_disk)
    (small_disk / "f").write_text("a" + "x" * 100_000)
    result = edit(tools, "f", ("ax", "b" * 150_000))
    assert result.text == "f cannot be written: no space is left on the disk. Nothing was changed."
    assert (small_disk / "f").read_text() == "a" + "x" * 100_000
    assert names(small_disk) == ["f"]


def test_a_disk_that_fills_up_in_the_middle_loses_nothing(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("a" * 10)
    os.link(root / "f", root / "g")
    real = os.write
    left = [12]

    def write(descriptor: int, data: Any) -> int:
        """After some bytes there is no room; those of the old content find theirs again."""
        if bytes(data) == b"a" * 10:
            return real(descriptor, data)
        if left[0] <= 0:
            raise OSError(28, "No space left on device")
        part = bytes(data)[: left[0]]
        left[0] -= len(part)
        return real(descriptor, part)

    monkeypatch.setattr(_files.os, "write", write)
    for allowed in (0, 4, 30, 34, 45):  # in the temporary file, then in the file itself
        left[0] = allowed
        result = edit(tools, "f", ("a" * 10, "b" * 30))
        assert result.text == "f cannot be written: no space is left on the disk. Nothing was changed."
        assert (root / "f").read_text() == (root / "g").read_text() == "a" * 10
        assert names(root) == ["f", "g"]


def test_an_immutable_file_is_an_error(tools: Tools, root: Path) -> None:
    """Not even root may replace it."""
    (root / "f").write_text("a")
    made = subprocess.run(["chattr", "+i", str(root / "f")], capture_output=True, check=False)
    if made.returncode:  # not every file system has the attribute; a read-only mount is as strict
        subprocess.run(["mount", "--bind", str(root), str(root)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True)
    try:
        result = edit(tools, "f", ("a", "b"))
    finally:
        if made.returncode:
            subprocess.run(["umount", str(root)], check=True)
        else:
            subprocess.run(["chattr", "-i", str(root / "f")], check=True)
    assert result.is_error
    assert result.text.endswith("Nothing was changed.")
    assert (root / "f").read_text() == "a"
    assert names(root) == ["f"]


def test_a_file_that_may_not_be_written_is_not_replaced(as_somebody_else: Any) -> None:
    folder, unprivileged = as_somebody_else
    (folder / "f").write_text("a")
    (folder / "f").chmod(0o444)
    tools = Tools(folder)
    edit(tools, "missing", ("a", "b"))  # imports done with rights
    with unprivileged():
        result = edit(tools, "f", ("a", "b"))
    assert result.text == "f cannot be written: permission denied. Nothing was changed."
    assert names(folder) == ["f"]


def test_a_running_program_can_be_replaced(tools: Tools, root: Path) -> None:
    """Its file cannot be written, but another can take its name."""
    import shutil

    program = shutil.which("sleep")
    assert program
    shutil.copy(program, root / "run")
    with subprocess.Popen([str(root / "run"), "600"]) as process:
        result = tools.write.call(path="run", content="new\n")
        process.kill()
    assert not result.is_error, result.text
    assert (root / "run").read_text() == "new\n"


def test_no_permission_for_the_folder_is_an_error(as_somebody_else: Any) -> None:
    folder, unprivileged = as_somebody_else
    (folder / "d").mkdir()
    (folder / "d" / "f").write_text("a")
    (folder / "d").chmod(0o555)
    tools = Tools(folder)
    edit(tools, "missing", ("a", "b"))  # imports done with rights
    with unprivileged():
        result = edit(tools, "d/f", ("a", "b"))
    assert result.text == "d/f cannot be written: permission denied. Nothing was changed."
    assert (folder / "d" / "f").read_text() == "a"
