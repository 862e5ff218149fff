"""AbortSignal from any thread and any task."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from pi_notebook.ai.abort import AbortController, Aborted


def test_it_goes_up_once_and_keeps_the_first_reason() -> None:
    controller = AbortController()
    signal = controller.signal
    assert (signal.aborted, signal.reason, repr(signal)) == (False, "", "<AbortSignal active>")
    signal.raise_if_aborted()
    controller.abort("stopped by the user")
    controller.abort("again")
    assert (signal.aborted, signal.reason) == (True, "stopped by the user")
    assert repr(signal) == "<AbortSignal aborted: stopped by the user>"
    with pytest.raises(Aborted, match="stopped by the user"):
        signal.raise_if_aborted()


def test_wait_returns_when_another_thread_aborts() -> None:
    async def scenario() -> bool:
        controller = AbortController()
        threading.Timer(0.02, controller.abort).start()
        await asyncio.wait_for(controller.signal.wait(), 30)
        await asyncio.wait_for(controller.signal.wait(), 30)  # and at once when it is up already
        return controller.signal.aborted

    assert asyncio.run(scenario())


def test_callbacks_are_called_once_at_once_if_it_is_late_and_not_when_forgotten() -> None:
    controller = AbortController()
    called: list[str] = []
    controller.signal.on_abort(lambda: called.append("early"))
    forget = controller.signal.on_abort(lambda: called.append("forgotten"))
    forget()
    forget()
    controller.abort()
    controller.signal.on_abort(lambda: called.append("late"))
    assert called == ["early", "late"]


def test_a_callback_that_raises_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    controller = AbortController()
    called: list[str] = []

    def broken() -> None:
        raise RuntimeError("callback broke")

    controller.signal.on_abort(broken)
    controller.signal.on_abort(lambda: called.append("second"))
    with caplog.at_level(logging.ERROR):
        controller.abort()
    assert called == ["second"]
    assert "callback broke" in caplog.text


def test_a_wait_whose_loop_is_closed_does_not_break_the_abort() -> None:
    controller = AbortController()

    async def begin() -> None:
        task = asyncio.ensure_future(controller.signal.wait())
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(begin())
    controller.abort()
    assert controller.signal.aborted


def test_each_of_many_threads_that_abort_at_once_calls_each_callback_once() -> None:
    controller = AbortController()
    called: list[int] = []
    for number in range(50):
        controller.signal.on_abort(lambda number=number: called.append(number))
    threads = [threading.Thread(target=controller.abort) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(called) == list(range(50))
