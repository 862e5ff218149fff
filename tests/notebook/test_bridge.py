"""The bridge without a kernel: calls, interrupts, and what it puts back. Kernels: `test_bridge_kernels`."""

from __future__ import annotations

import _thread
import contextvars
import functools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pi_notebook.notebook.bridge import Bridge, CallExited, CallInterrupted, bridge_of_thread, who_can_answer

CEILING = 20.0  # seconds; bounds a hang, measures nothing


class Publisher:
    """A terminal's display publisher."""

    def __init__(self) -> None:
        self.published: list[dict[str, Any]] = []

    def publish(self, **message: Any) -> None:
        self.published.append(message)


class Terminal:
    """An IPython shell without a kernel."""

    def __init__(self) -> None:
        self.display_pub = Publisher()


@pytest.fixture(autouse=True)
def _handler_is_put_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def interrupt() -> None:
    """What Ctrl-C does. The handler runs on the main thread, as soon as that runs Python code again."""
    _thread.interrupt_main(signal.SIGINT)


def run(work: Callable[[Bridge], object], on_interrupt: Callable[[], None] | None = None) -> Bridge:
    """One agent's cell in small: `work` on the agent's thread, this thread in the pump until it has ended."""
    ended = threading.Event()
    errors: list[BaseException] = []

    def agent() -> None:
        try:
            work(bridge)
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()
            bridge.wake()

    with Bridge(Terminal(), on_interrupt) as bridge:
        bridge.spawn(agent)
        assert bridge.wait(ended.is_set, timeout=CEILING)
    if errors:
        raise errors[0]
    return bridge


# ---- waiting


def test_without_a_kernel_no_click_can_arrive() -> None:
    with Bridge(Terminal()) as bridge:
        assert bridge.mode == "none"
        bridge.pump_once()


def test_wait_gives_up_after_its_timeout() -> None:
    with Bridge(Terminal()) as bridge:
        assert bridge.wait(lambda: False, timeout=0.01) is False
        assert bridge.wait(lambda: True, timeout=0) is True


def test_wake_and_call_do_not_wait_for_the_next_look() -> None:
    def work(bridge: Bridge) -> None:
        started = time.monotonic()
        for _ in range(200):
            bridge.call(int).result(CEILING)
        assert time.monotonic() - started < 10  # 50 s, if each had to wait for the pump's next look

    run(work)


# ---- calls


def test_calls_run_on_the_pumping_thread_in_order_and_in_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default="none")
    seen: list[tuple[int, bool, str]] = []

    def note(number: int) -> int:
        seen.append((number, threading.current_thread() is threading.main_thread(), variable.get()))
        return number

    def work(bridge: Bridge) -> None:
        variable.set("agent's")
        futures = [bridge.call(functools.partial(note, number)) for number in range(20)]
        assert [future.result(CEILING) for future in futures] == list(range(20))

    run(work)
    assert seen == [(number, True, "agent's") for number in range(20)]
    assert variable.get() == "none"


def test_an_error_of_a_call_reaches_its_caller_unchanged() -> None:
    error = ValueError("no")

    def fail() -> None:
        raise error

    def work(bridge: Bridge) -> None:
        with pytest.raises(ValueError, match="no") as caught:
            bridge.call(fail).result(CEILING)
        assert caught.value is error

    run(work)


@pytest.mark.parametrize(
    ("leave", "text"), [(lambda: sys.exit("bye"), "SystemExit: bye"), (lambda: next(iter(())), "")]
)
def test_a_call_that_tries_to_leave_becomes_an_ordinary_error(leave: Callable[[], Any], text: str) -> None:
    def work(bridge: Bridge) -> None:
        error = bridge.call(leave).exception(CEILING)
        assert isinstance(error, CallExited if text else StopIteration)
        assert str(error) == text

    run(work)


def test_a_call_from_inside_a_call_runs_at_once() -> None:
    def work(bridge: Bridge) -> None:
        assert bridge.call(lambda: bridge.call(lambda: 42).result(0)).result(CEILING) == 42

    run(work)


def test_wait_inside_a_call_pumps_on() -> None:
    def work(bridge: Bridge) -> None:
        inner: list[int] = []

        def outer_call() -> bool:
            other = threading.Thread(target=lambda: bridge.call(lambda: inner.append(1)))
            other.start()
            return bridge.wait(lambda: bool(inner), CEILING)

        assert bridge.call(outer_call).result(CEILING) is True

    run(work)


def test_a_call_cancelled_in_time_does_not_run() -> None:
    ran: list[int] = []
    with Bridge(Terminal()) as bridge:
        cancelled = bridge.call(lambda: ran.append(1))
        kept = bridge.call(lambda: ran.append(2))
        assert cancelled.cancel()
        assert bridge.wait(kept.done, CEILING)
    assert ran == [2]


def test_calls_that_have_not_started_at_the_end_are_cancelled() -> None:
    with Bridge(Terminal()) as bridge:
        early = bridge.call(int)
    late = bridge.call(int)
    assert early.cancelled()
    assert late.cancelled()


# ---- interrupts


def test_an_interrupt_of_the_pump_is_told_once_and_tears_nothing() -> None:
    told: list[bool] = []

    def work(bridge: Bridge) -> None:
        interrupt()
        while not told:
            time.sleep(0.001)

    bridge = run(work, on_interrupt=lambda: told.append(threading.current_thread() is threading.main_thread()))
    assert told == [True]
    assert bridge.interrupted


def interrupt_sleep() -> None:
    """Interrupt the main thread when it sleeps in a call, be the function that sleeps Python's or a builtin."""
    main = threading.main_thread().ident
    assert main is not None
    while sys._current_frames()[main].f_code.co_name not in ("_invoke", "<lambda>"):
        time.sleep(0.001)
    time.sleep(0.05)  # from the last Python instruction into the system call; nothing tells when it is there
    signal.pthread_kill(main, signal.SIGINT)


@pytest.mark.parametrize(
    "sleep",
    [lambda: time.sleep(CEILING), functools.partial(time.sleep, CEILING)],
    ids=["python function", "builtin function"],
)
def test_an_interrupt_hits_the_running_call_and_no_later_one_starts(sleep: Callable[[], None]) -> None:
    told: list[int] = []
    ran: list[int] = []

    def work(bridge: Bridge) -> None:
        futures = [bridge.call(sleep), bridge.call(lambda: ran.append(1))]
        interrupt_sleep()
        for future in futures:
            with pytest.raises(CallInterrupted, match=r"^interrupted by the user$"):
                future.result(CEILING / 2)

    bridge = run(work, on_interrupt=lambda: told.append(1))
    assert told == [1]
    assert ran == []
    assert bridge.interrupted


def test_a_keyboard_interrupt_of_the_functions_own_counts_too() -> None:
    told: list[int] = []

    def work(bridge: Bridge) -> None:
        def raise_it() -> None:
            raise KeyboardInterrupt

        assert isinstance(bridge.call(raise_it).exception(CEILING), CallInterrupted)
        while not told:
            time.sleep(0.001)

    run(work, on_interrupt=lambda: told.append(1))
    assert told == [1]


def test_an_interrupt_that_a_function_swallows_is_told_all_the_same() -> None:
    told: list[int] = []

    def swallow() -> str:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return "swallowed"
        return "not raised"

    def work(bridge: Bridge) -> None:
        assert bridge.call(swallow).result(CEILING) == "swallowed"
        while not told:
            time.sleep(0.001)

    run(work, on_interrupt=lambda: told.append(1))
    assert told == [1]


def test_a_second_interrupt_leaves_the_thread_at_once() -> None:
    told = threading.Event()
    never = threading.Event()

    def work() -> None:
        interrupt()
        told.wait(CEILING)
        interrupt()
        never.wait(CEILING)

    with Bridge(Terminal(), on_interrupt=told.set) as bridge:
        bridge.spawn(work)
        with pytest.raises(KeyboardInterrupt):
            bridge.wait(never.is_set, CEILING)
        assert told.is_set()
        assert bridge.wait(lambda: True) is True  # it can be used on
    never.set()


def test_an_interrupt_between_entry_and_wait_is_not_lost() -> None:
    told: list[int] = []
    with Bridge(Terminal(), on_interrupt=lambda: told.append(1)) as bridge:
        signal.raise_signal(signal.SIGINT)
        assert bridge.interrupted
        assert told == []
        bridge.wait(lambda: bool(told), CEILING)
    assert told == [1]


def test_the_handler_found_on_entry_is_put_back_whatever_happens() -> None:
    def own(signum: int, frame: object) -> None: ...

    for handler in (own, signal.SIG_IGN, signal.SIG_DFL):
        before = signal.signal(signal.SIGINT, handler)
        try:
            with pytest.raises(ZeroDivisionError), Bridge(Terminal()):
                assert signal.getsignal(signal.SIGINT) is not handler
                1 / 0
            assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)


def test_a_thread_that_cannot_have_a_signal_handler_can_pump() -> None:
    before = signal.getsignal(signal.SIGINT)
    results: list[object] = []

    def elsewhere() -> None:
        with Bridge(Terminal()) as bridge:
            results.append(signal.getsignal(signal.SIGINT) is before)
            future = bridge.call(threading.get_ident)
            bridge.wait(future.done, CEILING)
            results.append(future.result() == threading.get_ident())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(CEILING)
    assert results == [True, True]


# ---- output and answers


def test_a_terminal_publishes_through_its_own_publisher() -> None:
    terminal = Terminal()
    with Bridge(terminal) as bridge:
        bridge.publish({"text/plain": "a"}, display_id="d")
        bridge.publish({"text/plain": "b"}, {"text/plain": {"x": 1}}, display_id="d", update=True)
    assert terminal.display_pub.published == [
        {"data": {"text/plain": "a"}, "metadata": {}, "transient": {"display_id": "d"}, "update": False},
        {
            "data": {"text/plain": "b"},
            "metadata": {"text/plain": {"x": 1}},
            "transient": {"display_id": "d"},
            "update": True,
        },
    ]


def test_who_can_answer_in_a_terminal() -> None:
    assert who_can_answer(Terminal()) == "terminal"


# ---- messages


def test_what_waits_for_messages_is_told_on_the_cells_thread_also_from_within_a_call() -> None:
    told: list[bool] = []

    def on_main(_: object) -> None:
        told.append(threading.current_thread() is threading.main_thread())

    def work(bridge: Bridge) -> None:
        bridge.messages_handled().add_done_callback(on_main)
        bridge.call(bridge.pump_once).result(CEILING)
        bridge.messages_handled().result(CEILING)

    run(work)
    assert told == [True]


def test_a_message_that_waited_for_a_call_is_not_prompt() -> None:
    seen: list[bool] = []

    def hold(bridge: Bridge) -> None:
        time.sleep(0.3)
        bridge.messages_handled().add_done_callback(lambda _: seen.append(bridge.prompt))
        bridge.pump_once()
        bridge.messages_handled().add_done_callback(lambda _: seen.append(bridge.prompt))
        bridge.pump_once()

    def work(bridge: Bridge) -> None:
        bridge.messages_handled().add_done_callback(lambda _: seen.append(bridge.prompt))
        bridge.call(lambda: hold(bridge)).result(CEILING)

    run(work)
    assert seen == [True, False, True]


def test_nothing_waits_for_messages_of_a_bridge_that_is_closed() -> None:
    with Bridge(Terminal()) as bridge:
        early = bridge.messages_handled()
    assert early.cancelled()
    assert bridge.messages_handled().cancelled()


def test_a_thread_knows_the_innermost_of_its_bridges() -> None:
    assert bridge_of_thread() is None
    with Bridge(Terminal()) as outer:
        with Bridge(Terminal()) as inner:
            assert bridge_of_thread() is inner
        assert bridge_of_thread() is outer
    assert bridge_of_thread() is None
