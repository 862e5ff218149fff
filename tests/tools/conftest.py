"""Fixtures of the built-in tools: a folder, and its tools by name."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pi_notebook.agent.tool import Tool
from pi_notebook.tools import builtin


class Tools:
    """The built-in tools of one folder: `tools.read`, `tools.bash`, ..."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_name = {tool.name: tool for tool in builtin(root=root)}

    def __getattr__(self, name: str) -> Tool:
        return self.by_name[name]


def names(folder: Path) -> list[str]:
    """What is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder below another one, so that a file outside is near."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools(root)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder on a disk of 256 KB. Where mounting is not allowed the test fails: it cannot show what it should."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.fixture
def as_somebody_else() -> Iterator[tuple[Path, Callable[[], AbstractContextManager[None]]]]:
    """A folder that anybody may enter, and a context in which this process has no special rights there."""

    @contextmanager
    def unprivileged() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder), unprivileged
