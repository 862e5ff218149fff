from __future__ import annotations

import os
import resource
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from pi_notebook.tools import _files, _write
from pi_notebook.tools._write import WriteDetails

from .conftest import Tools, names


def test_a_new_file_is_created_with_its_folders(tools: Tools, root: Path) -> None:
    result = tools.write.call(path="a/b/c.txt", content="hé\nx")
    assert (root / "a/b/c.txt").read_bytes() == "hé\nx".encode()
    assert result.text == "Created a/b/c.txt (2 lines, 5 bytes)."
    diff = "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+hé\n+x\n\\ No newline at end of file\n"
    assert result.details == WriteDetails("a/b/c.txt", "created", diff, 5)


def test_a_file_is_replaced_whole(tools: Tools, root: Path) -> None:
    (root / "f").write_text("old\n")
    (root / "f").chmod(0o640)
    result = tools.write.call(path="f", content="new\n")
    assert result.text == "Replaced f (1 line, 4 bytes)."
    assert result.details == WriteDetails("f", "replaced", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n", 4)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_mode(tools: Tools, root: Path) -> None:
    before = os.umask(0o027)
    try:
        tools.write.call(path="f", content="")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640


def test_line_endings_are_written_as_given(tools: Tools, root: Path) -> None:
    tools.write.call(path="f", content="a\r\nb\n")
    assert (root / "f").read_bytes() == b"a\r\nb\n"


def test_binary_and_huge_old_content_is_replaced_without_a_diff(tools: Tools, root: Path) -> None:
    (root / "b").write_bytes(b"\0\1")
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 30)
    for name in ("b", "huge"):
        result = tools.write.call(path=name, content="x\n")
        assert (result.details.action, result.details.diff) == ("replaced", "")
        assert (root / name).read_text() == "x\n"


def test_the_same_content_is_no_error(tools: Tools, root: Path) -> None:
    (root / "f").write_text("a")
    assert tools.write.call(path="f", content="a").details == WriteDetails("f", "replaced", "", 1)


def test_a_link_is_written_through(tools: Tools, root: Path) -> None:
    (root / "link").symlink_to("real")
    assert tools.write.call(path="link", content="x").details.path == "real"
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "x"


@pytest.mark.parametrize("path", ["../f", "/tmp/pi-notebook-never", "out/f"])
def test_nothing_is_written_outside(tools: Tools, root: Path, path: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    assert "outside" in tools.write.call(path=path, content="x").text
    assert names(outside) == []
    assert not Path("/tmp/pi-notebook-never").exists()


@pytest.mark.parametrize("path", ["d", "d/", ".", ""])
def test_a_folder_is_no_place_for_a_file(tools: Tools, root: Path, path: str) -> None:
    (root / "d").mkdir()
    assert tools.write.call(path=path, content="x").is_error


def test_a_pipe_is_not_replaced(tools: Tools, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert tools.write.call(path="pipe", content="x").text == "pipe is a named pipe, not a file."


def test_a_file_as_a_folder_is_an_error(tools: Tools, root: Path) -> None:
    (root / "f").write_text("a")
    result = tools.write.call(path="f/g", content="x")
    assert result.text == "f/g cannot be written: a part of the path is not a folder."


def test_a_name_that_is_too_long_is_an_error_and_leaves_no_folders(tools: Tools, root: Path) -> None:
    result = tools.write.call(path="new/" + "x" * 300, content="x")
    assert result.is_error
    assert "too long" in result.text
    assert names(root) == []


def test_long_names_that_fit_can_be_written(tools: Tools, root: Path) -> None:
    assert not tools.write.call(path="é" * 127, content="x").is_error
    assert names(root) == ["é" * 127]


def test_a_lone_surrogate_is_refused(tools: Tools, root: Path) -> None:
    result = tools.write.call(path="f", content="ab\ud800")
    assert result.text == "The content holds '\\ud800' at 2, which is no character; nothing was written."
    assert names(root) == []


def test_a_file_made_in_the_meantime_is_not_overwritten(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _write.replace_file

    def meanwhile(*args: Any, **options: Any) -> None:
        (root / "f").write_text("someone else's")
        real(*args, **options)

    monkeypatch.setattr(_write, "replace_file", meanwhile)
    assert "someone else" in tools.write.call(path="f", content="mine").text
    assert (root / "f").read_text() == "someone else's"


def test_a_folder_swapped_for_a_link_is_not_followed(tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "d").mkdir()
    outside = root.parent / "outside"
    outside.mkdir()
    real = _write.replace_file

    def swap(*args: Any, **options: Any) -> None:
        (root / "d").rename(root / "old")
        (root / "d").symlink_to(outside)
        real(*args, **options)

    monkeypatch.setattr(_write, "replace_file", swap)
    assert tools.write.call(path="d/f", content="x").is_error
    assert names(outside) == []


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    tools = Tools(small_disk)
    (small_disk / "f").write_text("keep")
    for path in ("f", "new/deep/g"):
        result = tools.write.call(path=path, content="x" * 400_000)
        assert result.text == f"{path} cannot be written: no space is left on the disk. Nothing was changed."
    assert names(small_disk) == ["f"]
    assert (small_disk / "f").read_text() == "keep"
    assert not tools.write.call(path="f", content="fits").is_error


def test_a_size_limit_of_the_system_loses_nothing(tools: Tools, root: Path) -> None:
    (root / "f").write_text("keep")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, before[1]))
    try:
        result = tools.write.call(path="f", content="x" * (5 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.text == "f cannot be written: the file would be larger than is allowed here. Nothing was changed."
    assert (root / "f").read_text() == "keep"
    assert names(root) == ["f"]


def test_no_permission_is_an_error(as_somebody_else: Any) -> None:
    folder, unprivileged = as_somebody_else
    (folder / "d").mkdir(mode=0o555)
    tools = Tools(folder)
    tools.write.call(path="first", content="")  # imports done with rights
    with unprivileged():
        result = tools.write.call(path="d/sub/f", content="x")
    assert result.text == "d/sub/f cannot be written: permission denied. Nothing was changed."
    assert names(folder / "d") == []


def test_the_temporary_file_is_not_readable_through_its_name(tools: Tools, root: Path, monkeypatch: Any) -> None:
    """It is made exclusively: a link that waits under its name is not followed."""
    monkeypatch.setattr(_files.secrets, "token_hex", lambda n: "0" * 2 * n)
    outside = root.parent / "outside"
    outside.write_text("keep")
    (root / f".pi-notebook-{'0' * 12}.tmp").symlink_to(outside)
    assert tools.write.call(path="f", content="x").is_error
    assert outside.read_text() == "keep"
