from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pi_notebook.tools import _turns
from pi_notebook.tools._turns import file_key, in_turn


@pytest.fixture(autouse=True)
def no_turn_is_left() -> Any:
    yield
    assert _turns._last == {}


def test_work_for_one_key_runs_in_the_order_of_the_calls() -> None:
    done: list[int] = []

    async def run() -> list[int]:
        return await asyncio.gather(*(in_turn("k", lambda n=n: done.append(n) or n) for n in range(50)))  # type: ignore[misc]

    assert asyncio.run(run()) == done == list(range(50))


def test_work_for_other_keys_does_not_wait() -> None:
    gate = threading.Event()

    async def run() -> None:
        first = asyncio.ensure_future(in_turn("a", lambda: gate.wait(60)))
        await asyncio.sleep(0)
        await in_turn("b", gate.set)
        assert await first

    asyncio.run(run())


def test_an_error_is_raised_and_passes_the_turn_on() -> None:
    async def run() -> str:
        failing = asyncio.ensure_future(in_turn("k", lambda: 1 / 0))
        following = asyncio.ensure_future(in_turn("k", lambda: "fine"))
        with pytest.raises(ZeroDivisionError):
            await failing
        return await following

    assert asyncio.run(run()) == "fine"


def test_a_cancelled_call_that_waits_never_runs_and_passes_the_turn_on() -> None:
    gate = threading.Event()
    ran: list[str] = []

    async def run() -> None:
        first = asyncio.ensure_future(in_turn("k", lambda: (gate.wait(60), ran.append("first"))))
        second = asyncio.ensure_future(in_turn("k", lambda: ran.append("second")))
        third = asyncio.ensure_future(in_turn("k", lambda: ran.append("third")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, third)
        assert second.cancelled()

    asyncio.run(run())
    assert ran == ["first", "third"]


def test_a_cancelled_call_that_runs_keeps_its_turn_until_it_ends() -> None:
    begun, gate = threading.Event(), threading.Event()
    ran: list[str] = []

    def slow() -> None:
        begun.set()
        gate.wait(60)
        ran.append("slow")

    async def run() -> None:
        first = asyncio.ensure_future(in_turn("k", slow))
        while not begun.is_set():
            await asyncio.sleep(0)
        first.cancel()
        second = asyncio.ensure_future(in_turn("k", lambda: ran.append("second")))
        await asyncio.sleep(0)
        assert ran == []
        gate.set()
        await second

    asyncio.run(run())
    assert ran == ["slow", "second"]


def test_loops_on_several_threads_share_the_queue() -> None:
    """A read-modify-write of several agents loses nothing."""
    number = [0]

    def add() -> None:
        before = number[0]
        threading.Event().wait(0.0001)
        number[0] = before + 1

    async def run() -> None:
        await asyncio.gather(*(in_turn("k", add) for _ in range(25)))

    threads = [threading.Thread(target=lambda: asyncio.run(run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert number == [100]


def test_one_file_has_one_key(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.link(tmp_path / "f", tmp_path / "g")
    assert file_key(tmp_path / "f") == file_key(tmp_path / "g")
    assert file_key(tmp_path / "New.txt") == file_key(tmp_path / "new.TXT")
    assert file_key(tmp_path / "caf\u00e9") == file_key(tmp_path / "cafe\u0301")
    assert file_key(tmp_path / "a") != file_key(tmp_path / "b")
