from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pi_notebook.tools._ls import ListDetails

from .conftest import Tools
from .test_walk import make_files


def test_entries_are_sorted_and_marked(tools: Tools, root: Path) -> None:
    make_files(root, "b.txt", "A.txt", ".env", "sub/x", "a.txt")
    (root / "link").symlink_to("sub")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    result = tools.ls.call()
    assert result.text == ".env\nA.txt\na.txt\nb.txt\nbroken -> nowhere\nlink -> sub\npipe\nsub/"
    assert result.details == ListDetails(".", 8, False)


def test_a_folder_below(tools: Tools, root: Path) -> None:
    make_files(root, "sub/x")
    assert tools.ls.call(path="sub").text == "x"
    (root / "link").symlink_to("sub")
    assert tools.ls.call(path="link").text == "x"


def test_an_empty_folder_says_so(tools: Tools) -> None:
    assert tools.ls.call().text == "(empty folder)"


def test_five_hundred_entries_at_once(tools: Tools, root: Path) -> None:
    make_files(root, *(f"f{n:03}" for n in range(600)))
    result = tools.ls.call()
    assert result.details == ListDetails(".", 500, True)
    assert result.text.endswith("f499\n\n[100 of 600 entries are left out; raise limit or use find.]")
    assert tools.ls.call(limit=1).text == "f000\n\n[599 of 600 entries are left out; raise limit or use find.]"


def test_errors(tools: Tools, root: Path) -> None:
    (root / "f").touch()
    assert tools.ls.call(path="f").text == "f is not a folder; look into it with read."
    assert tools.ls.call(path="no").text == "There is no file no. Look with ls or find."
    assert "outside" in tools.ls.call(path="/").text


def test_odd_names_are_on_one_line_each(tools: Tools, root: Path) -> None:
    (root / "a\nb").mkdir()
    (root / os.fsdecode(b"\xe9")).touch()
    (root / "l").symlink_to("x\ny")
    assert tools.ls.call().text == '"a\\nb"/\nl -> "x\\ny"\n"\\xe9"'


def test_no_permission_is_an_error(as_somebody_else: Any) -> None:
    folder, unprivileged = as_somebody_else
    (folder / "d").mkdir(mode=0o700)
    (folder / "d" / "sub").mkdir()
    (folder / "open.txt").write_text("word")
    (folder / "d" / "f.txt").write_text("word")
    tools = Tools(folder)
    tools.ls.call()
    tools.grep.call(pattern="x")
    with unprivileged():
        assert tools.ls.call(path="d").text == "d cannot be listed: permission denied."
        found = tools.find.call(pattern="*.txt")
        matches = tools.grep.call(pattern="word")
    assert found.text == "open.txt\n\n[Not looked into: d (permission denied).]"
    assert matches.text == "open.txt:1: word\n\n[Not looked into: d (permission denied).]"
