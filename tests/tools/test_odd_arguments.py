"""Whatever a model sends, a tool answers in words of its own, and nothing happens outside the root."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pi_notebook.tools import builtin

from .conftest import Tools, names

PIECES = [
    "a",
    "d",
    "..",
    ".",
    "/",
    "//",
    "~",
    "\\",
    "link",
    "out",
    "loop",
    "pipe",
    "\0",
    "\n",
    '"',
    "é",
    "\ud800",
    "x" * 300,
]
PIECES += ["C:", "nul", "@", "a.txt", "d/b.txt", "\\xff", "$HOME", "*", "\udcff", "file://", "%2e%2e", " "]
ODD_PATHS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.text(max_size=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("odd")
    root = top / "root"
    (root / "d").mkdir(parents=True)
    (root / "a.txt").write_text("text\n")
    (root / "d" / "b.txt").write_text("text\n")
    (top / "secret").write_text("secret text\n")
    (root / "link").symlink_to("a.txt")
    (root / "out").symlink_to("..")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    return root


@settings(max_examples=150, deadline=None)
@given(path=ODD_PATHS)
@example(path="out/secret")
@example(path="@" + "x" * 300)
@example(path="a" * 5_000)
@example(path="/".join(["d"] * 3_000))
def test_any_path_gets_an_answer(folder: Path, path: str) -> None:
    tools = Tools(folder)
    before = names(folder.parent)
    answers = [
        tools.read.call(path=path),
        tools.ls.call(path=path),
        tools.find.call(pattern="*", path=path),
        tools.grep.call(pattern="secret", path=path),
        tools.edit.call(path=path, edits=[{"oldText": "no such text", "newText": "x"}]),
    ]
    for answer in answers:
        assert not re.match(r"\w+(Error|Exception|Warning)\b", answer.text), answer.text
        assert "secret text" not in answer.text
        answer.text.encode()
    assert names(folder.parent) == before
    assert (folder.parent / "secret").read_text() == "secret text\n"


@settings(max_examples=100, deadline=None)
@given(path=ODD_PATHS)
def test_any_path_is_written_inside_or_not_at_all(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    top = tmp_path_factory.mktemp("w")
    (top / "root").mkdir()
    (top / "root" / "out").symlink_to("..")
    answer = Tools(top / "root").write.call(path=path, content="x")
    assert not re.match(r"\w+(Error|Exception|Warning)\b", answer.text), answer.text
    assert names(top) == ["root"]
    files = [found for found in (top / "root").rglob("*") if found.is_file()]
    assert len(files) == (0 if answer.is_error else 1)


@settings(max_examples=150, deadline=None)
@given(pattern=st.text(st.sampled_from("ab*?[]{},!/.\\()|+^$-\n é"), max_size=12), glob=st.booleans())
def test_any_pattern_gets_an_answer(folder: Path, pattern: str, glob: bool) -> None:
    tools = Tools(folder)
    found = tools.find.call(pattern=pattern)
    matched = tools.grep.call(pattern="text", glob=pattern) if glob else tools.grep.call(pattern=pattern)
    for answer in (found, matched):
        assert not re.match(r"\w+(Error|Exception|Warning)\b", answer.text), answer.text


@pytest.mark.parametrize("name", ["read", "ls", "find", "grep", "edit", "write", "bash", "python", "variables"])
def test_unknown_and_missing_arguments_are_refused_before_anything_runs(folder: Path, name: str) -> None:
    (tool,) = builtin(name, root=folder)
    assert tool.call(surprise=1).is_error


def test_a_command_does_not_outlive_the_process(tmp_path: Path) -> None:
    script = f"""
import threading, time
from pathlib import Path
from pi_notebook.tools import builtin
(bash,) = builtin("bash", root={str(tmp_path)!r})
threading.Thread(target=bash.call, kwargs=dict(command="echo $$ > new; mv new pid; sleep 600"), daemon=True).start()
while not (Path({str(tmp_path)!r}) / "pid").exists():
    time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    pid = int((tmp_path / "pid").read_text())
    from .test_bash import alive, eventually

    assert eventually(lambda: not alive(pid))
