"""Shells that tests make in their own process end with the test."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture(autouse=True)
def _shells_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A shell puts its clean-up, with a garbage collection, at the end of the process: with hundreds, minutes."""
    made: list[Any] = []
    begin = InteractiveShell.__init__

    def remember(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(InteractiveShell, "__init__", remember)
    yield
    for shell in made:
        atexit.unregister(shell.atexit_operations)
        magics = shell.magics_manager.registry.get("AgentMagics")
        if magics is not None:
            magics.close()
