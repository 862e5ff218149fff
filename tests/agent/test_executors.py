"""Tools on executors: threads, spawned processes, and a real Dask cluster."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pi_notebook.agent import _lines
from pi_notebook.agent._signature import _CONTEXT, BoundCall
from pi_notebook.agent.agent import Agent
from pi_notebook.agent.execute_phase import ABORTED
from pi_notebook.agent.executors import run_remote
from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.results import short_traceback
from pi_notebook.agent.tool import ConsoleText, Progress, ToolContext
from pi_notebook.ai.abort import AbortController, AbortSignal
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.errors import ToolError


@pytest.fixture(scope="module")
def processes() -> Iterator[Any]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client.get_executor()  # type: ignore[no-untyped-call]


@pytest.fixture(params=["processes", "dask"])
def executor(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def execute(made: Any, signal: AbortSignal | None = None, on_update: Any = None, **arguments: Any) -> Any:
    return asyncio.run(made.execute("c", made.bind(arguments), signal, on_update))


def in_a_cell(source: str, **names: Any) -> Any:
    """The tool `f` that `source` defines, as a notebook would: in `__main__`, where no other process finds it."""
    cell: dict[str, Any] = {"tool": tool, "ToolContext": ToolContext, "__name__": "__main__", **names}
    exec(compile(source, "cell.py", "exec", dont_inherit=True), cell)
    return cell["f"]


def test_a_function_of_a_notebook_runs_elsewhere(executor: Any) -> None:
    f = in_a_cell(
        "import os\n"
        "factor = 3\n"
        "class Point:\n"
        "    def __init__(self, n): self.n = n\n"
        "@tool(executor=executor)\n"
        "def f(n: int):\n"
        "    print('from', 'elsewhere')\n"
        "    return {'pid': os.getpid(), 'point': Point(n * factor)}\n",
        executor=executor,
    )
    updates: list[Any] = []

    result = execute(f, on_update=updates.append, n=2)

    assert result.value["pid"] != os.getpid()
    assert result.value["point"].n == 6
    assert [update.details for update in updates] == [ConsoleText("from elsewhere\n")]


def test_what_it_prints_there_is_the_result_of_a_function_that_returns_nothing(executor: Any) -> None:
    f = in_a_cell("@tool(executor=executor)\ndef f():\n    print('here')\n", executor=executor)

    assert execute(f).text == "here\n"


def test_progress_comes_while_it_runs_and_the_last_is_always_there(executor: Any) -> None:
    f = in_a_cell(
        "import time\n"
        "@tool(executor=executor)\n"
        "def f(ctx: ToolContext):\n"
        "    for i in ctx.track(range(2000), 'counting'):\n"
        "        time.sleep(0.0002)\n"
        "    ctx.update({'half': 1})\n"
        "    return ctx.tool_call_id\n",
        executor=executor,
    )
    updates: list[Any] = []

    result = execute(f, on_update=updates.append)

    assert result.value == "c"
    bars = [update.details for update in updates if isinstance(update.details, Progress)]
    assert bars == sorted(bars, key=lambda bar: bar.done)
    assert 2 <= len(bars) < 500, "thinned out"
    assert updates[-1].details == {"half": 1}


def test_an_abort_reaches_it(executor: Any) -> None:
    f = in_a_cell(
        "import time\n"
        "@tool(executor=executor)\n"
        "def f(ctx: ToolContext):\n"
        "    ctx.progress(0)\n"
        "    while not ctx.signal.aborted:\n"
        "        time.sleep(0.005)\n"
        "    return 'stopped itself'\n",
        executor=executor,
    )
    controller = AbortController()

    result = execute(f, controller.signal, lambda update: controller.abort("enough"))

    assert result.value == "stopped itself"


def test_an_abort_drops_a_call_that_waits_for_its_turn(processes: Any) -> None:
    started = threading.Event()
    slow = in_a_cell(
        "import time\n"
        "@tool(executor=executor)\n"
        "def f(ctx: ToolContext):\n"
        "    ctx.progress(0)\n"
        "    while not ctx.signal.aborted:\n"
        "        time.sleep(0.005)\n",
        executor=processes,
    )
    controllers = [AbortController() for _ in range(4)]

    async def main() -> list[Any]:
        first = asyncio.ensure_future(slow.execute("c0", {}, controllers[0].signal, lambda update: started.set()))
        while not started.is_set():
            await asyncio.sleep(0.005)
        # One runs and one is handed to the process ahead of time; of the others none has begun.
        rest = [asyncio.ensure_future(slow.execute("c", {}, each.signal, None)) for each in controllers[1:]]
        await asyncio.sleep(0.1)
        controllers[3].abort("too late")
        outcome = await asyncio.gather(rest[2], return_exceptions=True)
        for each in controllers:
            each.abort("end")
        await asyncio.gather(first, *rest, return_exceptions=True)
        return outcome

    (error,) = asyncio.run(main())
    assert str(error) == "The executor dropped this call before it began."


def test_after_an_abort_none_of_the_waiting_calls_starts(processes: Any, tmp_path: Path) -> None:
    f = in_a_cell(
        "import pathlib, time\n"
        "@tool(executor=executor)\n"
        "def f(n: int, ctx: ToolContext):\n"
        f"    pathlib.Path({str(tmp_path)!r}, str(n)).touch()\n"
        "    ctx.progress(n)\n"
        "    while not ctx.signal.aborted:\n"
        "        time.sleep(0.005)\n",
        executor=processes,
    )
    agent = Agent(model=scripted([call("f", n=n) for n in range(4)], "done"), tools=[f])

    def stop(event: Any, signal: Any) -> None:
        if event.type == "tool_execution_update":
            agent.abort()

    agent.subscribe(stop)
    result = agent.run("go")
    assert processes.submit(int, "1").result(60) == 1  # behind all of them
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    assert [record.result.text for record in result.tool_calls[1:]] == 3 * [ABORTED]
    assert [record.duration_ms for record in result.tool_calls[1:]] == 3 * [None]


def test_the_time_in_the_queue_is_not_the_calls_own() -> None:
    one = ThreadPoolExecutor(1)

    @tool(executor=one)
    def slow() -> None:
        """Slow."""
        time.sleep(1.0)

    @tool(executor=one, timeout=0.7)
    def quick() -> str:
        """Quick."""
        return "in time"

    result = Agent(model=scripted([call("slow"), call("quick")], "done"), tools=[slow, quick]).run("go")
    assert result.tool_calls[1].result.text == "in time"
    assert (result.tool_calls[1].duration_ms or 0) < 500


def test_an_error_comes_back_with_the_line_in_the_users_code(executor: Any) -> None:
    f = in_a_cell(
        "def inner(n):\n    return 1 / n\n@tool(executor=executor)\ndef f(n: int):\n    return inner(n)\n",
        executor=executor,
    )

    result = f.call(n=0)

    assert isinstance(result.error, ZeroDivisionError)
    assert result.text == "ZeroDivisionError: division by zero\nat cell.py, line 2, in inner"
    assert short_traceback(result.error) == (
        "cell.py, line 5, in f\ncell.py, line 2, in inner\nZeroDivisionError: division by zero"
    )


def test_a_tool_error_stays_its_text(executor: Any) -> None:
    f = in_a_cell(
        "@tool(executor=executor)\ndef f():\n    raise ToolError('another city')\n",
        executor=executor,
        ToolError=ToolError,
    )

    assert f.call().text == "another city"


def test_an_error_that_cannot_be_pickled_is_told_in_words(executor: Any) -> None:
    f = in_a_cell(
        "class Odd(Exception):\n"
        "    def __init__(self, a, b): super().__init__(f'{a} and {b}')\n"
        "@tool(executor=executor)\n"
        "def f():\n"
        "    raise Odd(1, 2)\n",
        executor=executor,
    )

    assert f.call().text == "RuntimeError: Odd: 1 and 2\nat cell.py, line 5, in f"


def test_what_cannot_be_pickled_is_named(executor: Any) -> None:
    lock = threading.Lock()
    sent = in_a_cell("@tool(executor=executor)\ndef f():\n    return lock\n", executor=executor, lock=lock)
    returned = in_a_cell(
        "@tool(executor=executor)\ndef f():\n    import threading\n    return threading.Lock()\n", executor=executor
    )

    assert sent.call().text.startswith("Tool 'f' cannot be sent to its executor: TypeError: cannot pickle")
    assert returned.call().text.startswith("Tool 'f' ran, but its value (a lock) cannot be sent back: TypeError:")


def test_generators_run_to_their_end_there(executor: Any) -> None:
    f = in_a_cell(
        "@tool(executor=executor)\ndef f():\n    yield 'one'\n    yield 'two'\n    return 'three'\n", executor=executor
    )
    updates: list[Any] = []

    assert execute(f, on_update=updates.append).text == "three"
    assert updates[-1].text == "two"


def test_a_figure_plotted_there_is_shown_here(processes: Any) -> None:
    f = in_a_cell(
        "@tool(executor=executor)\n"
        "def f():\n"
        "    import matplotlib\n"
        "    matplotlib.use('agg')\n"
        "    import matplotlib.pyplot as plt\n"
        "    plt.plot([1, 2])\n",
        executor=processes,
    )

    assert [block.type for block in execute(f).content] == ["image"]


def test_a_process_that_dies_is_an_error_of_the_call() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        f = in_a_cell("import os\n@tool(executor=executor)\ndef f():\n    os._exit(1)\n", executor=executor)

        assert f.call().text.startswith("BrokenProcessPool: ")


def test_a_thread_pool_needs_no_pickling() -> None:
    lock = threading.Lock()
    updates: list[Any] = []
    with ThreadPoolExecutor(1) as executor:

        @tool(executor=executor)
        def f(ctx: ToolContext) -> Any:
            ctx.progress(1, 2)
            print("seen")
            return lock

        assert execute(f, on_update=updates.append).value is lock
    assert [update.details for update in updates] == [Progress(1, 2), ConsoleText("seen\n")]


def test_without_a_line_the_call_runs_all_the_same() -> None:
    def add(ctx: ToolContext) -> int:
        ctx.progress(1, 2)
        return 3

    job = (add, BoundCall([], {"ctx": _CONTEXT}), "c", "f", _lines.LoopbackEnd(1, "nobody", b"key"))
    value, error, text, displays, had_line = pickle.loads(run_remote(cloudpickle.dumps(job)))

    assert (value, error, text, displays, had_line) == (3, None, "", [], False)


def test_a_stranger_on_the_line_is_not_heard() -> None:
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    heard: list[bytes] = []
    begun: list[bool] = []
    line = _lines.LoopbackLine(heard.append, lambda: begun.append(True))
    with pytest.raises((AuthenticationError, EOFError, OSError)):
        Client(("127.0.0.1", line.end.port), authkey=b"guess")
    assert repr(line.end) == f"<LoopbackEnd at port {line.end.port}>", "the key is not shown"

    with line.end.open() as end:
        end.send("text", b"hello")
    line.wait_for_rest()
    line.close()

    assert (heard, begun) == ([b"hello"], [True])


def test_dask_is_left_without_futures(dask: Any) -> None:
    f = in_a_cell("@tool(executor=executor)\ndef f():\n    return 1\n", executor=dask)
    f.call()
    deadline = time.monotonic() + 30
    while dask._client.futures and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.05)

    assert not dask._client.futures
