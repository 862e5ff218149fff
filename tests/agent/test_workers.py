from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time

import pytest

from pi_notebook.agent.workers import run_in_worker, start_worker


def test_it_runs_on_a_daemon_thread_in_a_copy_of_the_context() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    variable.set(1)

    def job() -> tuple[bool, bool, int]:
        seen = variable.get()
        variable.set(2)
        return threading.current_thread().daemon, threading.current_thread() is threading.main_thread(), seen

    assert asyncio.run(run_in_worker(job)) == (True, False, 1)
    assert variable.get() == 1


def test_an_idle_thread_is_used_again() -> None:
    first = start_worker(threading.get_ident).result(timeout=20)
    for _ in range(200):  # the thread offers itself again just after its result is set
        if start_worker(threading.get_ident).result(timeout=20) == first:
            return
        time.sleep(0.01)
    pytest.fail("each job had a thread of its own")


def test_as_many_run_at_once_as_are_asked_for() -> None:
    meeting = threading.Barrier(50, timeout=60)

    async def main() -> list[int]:
        return await asyncio.gather(*(run_in_worker(meeting.wait) for _ in range(50)))

    assert sorted(asyncio.run(main())) == list(range(50))


@pytest.mark.parametrize("error", [ValueError("v"), KeyboardInterrupt("k")], ids=repr)
def test_exceptions_arrive(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        start_worker(fail).result(timeout=20)
    assert raised.value is error


def test_exceptions_that_would_break_a_loop_arrive_wrapped() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        asyncio.run(run_in_worker(leave))


def test_cancelling_the_wait_leaves_the_thread_to_itself() -> None:
    go, done = threading.Event(), threading.Event()

    def job() -> None:
        go.wait(20)
        done.set()

    async def main() -> None:
        task = asyncio.ensure_future(run_in_worker(job))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    go.set()
    assert done.wait(20)


def test_a_stuck_thread_does_not_keep_the_process() -> None:
    code = (
        "import asyncio, threading\nfrom pi_notebook.agent.workers import run_in_worker\n"
        "async def main():\n"
        "    task = asyncio.ensure_future(run_in_worker(threading.Event().wait))\n"
        "    await asyncio.sleep(0.05)\n"
        "asyncio.run(main())"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    code = (
        "import os\nfrom pi_notebook.agent.workers import start_worker\n"
        "start_worker(int).result(10)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(start_worker(lambda: 7).result(timeout=20))\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
