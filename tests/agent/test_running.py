# ruff: noqa: UP045 - Optional is one of the annotations that must work
"""A function tool at work: variables by name, threads, generators, output, errors."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Optional

import pytest

from pi_notebook.agent._variable_types import NotebookVariable
from pi_notebook.agent.agent import Agent
from pi_notebook.agent.function_tool import FunctionTool, tool
from pi_notebook.agent.tool import Host, Progress, ToolContext, ToolResult
from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.errors import ToolError


def run(tool: Any, **arguments: Any) -> Any:
    """The value of one call; raises what the tool's failure was."""
    result = tool.call(**arguments)
    assert not result.is_error, result.text
    return result.value


class NotJson:
    pass


class Named(Host):
    def __init__(self, **values: Any) -> None:
        self.values = values

    def variables(self) -> dict[str, Any]:
        return self.values


def with_host(made: FunctionTool[Any, Any], host: Host, **arguments: Any) -> ToolResult:
    from pi_notebook.agent.single_call import run_tool_call
    from pi_notebook.ai.messages import ToolCall

    return asyncio.run(run_tool_call(ToolCall("c", made.name, arguments), [made], ask=False, host=host))


class TestVariables:
    def test_the_model_passes_the_name_of_a_dataframe(self) -> None:
        import pandas as pd

        sales = pd.DataFrame({"price": [1, 3]})

        @tool
        def mean(table: pd.DataFrame, column: str) -> float:
            """Mean.

            Args:
                table: Where to look.
            """
            return float(table[column].mean())

        assert mean.schema["properties"]["table"] == {
            "type": "string",
            "description": "Where to look. Name of a variable in the notebook that holds a pandas.DataFrame.",
        }
        assert with_host(mean, Named(sales=sales), table="sales", column="price").value == 2.0

    def test_a_wrong_name_is_answered_with_those_that_would_do(self) -> None:
        import pandas as pd

        @tool
        def f(table: pd.DataFrame) -> None: ...

        frame = pd.DataFrame()
        host = Named(sales=frame, prices=frame, n=3, _hidden=frame)

        assert (
            "table: there is no variable 'slaes'; variables that hold a pandas.DataFrame: sales, prices"
            in with_host(f, host, table="slaes").text
        )
        assert (
            "table: variable 'n' holds int, not pandas.DataFrame; variables that hold a pandas.DataFrame: sales, prices"
            in with_host(f, host, table="n").text
        )
        assert "no variable holds a pandas.DataFrame" in with_host(f, Named(), table="sales").text

    def test_optional_lists_and_dicts_of_them(self) -> None:
        import numpy as np
        from matplotlib.figure import Figure

        @tool
        def f(many: list[np.ndarray], named: dict[str, Figure], maybe: Optional[np.ndarray] = None) -> Any:
            return [each.shape for each in many], list(named), maybe

        host = Named(a=np.zeros(2), b=np.zeros((1, 2)), fig=Figure())

        assert with_host(f, host, many=["a", "b"], named={"x": "fig"}).value == ([(2,), (1, 2)], ["x"], None)

    def test_a_class_of_ones_own_can_be_marked(self) -> None:
        @tool
        def f(thing: Annotated[NotJson, NotebookVariable()]) -> str:
            return type(thing).__name__

        assert with_host(f, Named(it=NotJson()), thing="it").value == "NotJson"
        assert "there is no variable 'x'; variables that hold a NotJson: it" in with_host(
            f, Named(it=NotJson()), thing="x"
        ).text.replace("test_running.", "").replace("tests.", "")

    def test_a_marked_class_may_be_optional(self) -> None:
        @tool
        def f(thing: Annotated[NotJson | None, NotebookVariable()] = None) -> str:
            return type(thing).__name__

        assert with_host(f, Named(it=NotJson()), thing="it").value == "NotJson"
        assert with_host(f, Named(), thing=None).value == "NoneType"

    def test_in_code_the_object_itself_can_be_passed(self) -> None:
        import pandas as pd

        @tool
        def total(table: pd.DataFrame, when: Any = None) -> int:
            return int(table["n"].sum())

        assert run(total, table=pd.DataFrame({"n": [1, 2]})) == 3

    def test_a_sqlite_handle_works_on_the_thread_it_was_made_on(self) -> None:
        handle = sqlite3.connect(":memory:")

        @tool
        def query(db: sqlite3.Connection, sql: str) -> Any:
            return db.execute(sql).fetchall()

        assert run(query, db=handle, sql="select 1") == [(1,)]


class TestRunning:
    def test_async_tools_run_at_once_on_the_loop(self) -> None:
        inside = 0
        both = asyncio.Event()

        @tool
        async def meet() -> str:
            nonlocal inside
            inside += 1
            if inside == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 20)
            return "met"

        agent = Agent(model=scripted([call("meet"), call("meet")], "done"), tools=[meet])
        outcome = asyncio.run(agent.prompt("go"))

        assert [each.result.text for each in outcome.tool_calls] == ["met", "met"]

    def test_worker_tools_run_at_once_on_daemon_threads(self) -> None:
        meeting = threading.Barrier(2, timeout=20)

        @tool(thread="worker")
        def meet() -> bool:
            meeting.wait()
            return threading.current_thread().daemon

        agent = Agent(model=scripted([call("meet"), call("meet")], "done"), tools=[meet])
        outcome = asyncio.run(agent.prompt("go"))

        assert [each.result.text for each in outcome.tool_calls] == ["true", "true"]

    def test_a_plain_tools_table_does_not_wait_for_the_tools_behind_it(self) -> None:
        class OneThread(Host):
            """As the notebook's host: one plain function after another."""

            def __init__(self) -> None:
                self.thread = ThreadPoolExecutor(1)

            async def run_plain(self, function: Any, context: ToolContext) -> Any:
                run = contextvars.copy_context().run
                return await asyncio.get_running_loop().run_in_executor(self.thread, run, function)

        at_its_end: list[str] = []

        @tool(timeout=5)
        def table() -> list[dict[str, int]]:
            """A table."""
            return [{"a": 1}]

        @tool
        def second() -> str:
            """Waits until the first has its result."""
            assert told.wait(10)
            return "second"

        told = threading.Event()
        agent = Agent(model=scripted([call("table"), call("second")], "x"), tools=[table, second], host=OneThread())

        def listen(event: Any, signal: Any) -> None:
            if event.type == "tool_execution_end":
                at_its_end.append(event.tool_name)
                told.set()

        agent.subscribe(listen)
        first, last = agent.run("go").tool_calls
        assert at_its_end == ["table", "second"]
        assert (first.value, last.value) == ([{"a": 1}], "second")

    def test_context_variables_are_seen_and_not_changed(self) -> None:
        variable = contextvars.ContextVar("variable", default="unset")
        variable.set("outside")

        @tool
        def f() -> str:
            seen = variable.get()
            variable.set("inside")
            return seen

        assert run(f) == "outside"
        assert variable.get() == "outside"

    def test_each_yield_is_an_update_and_the_returned_value_the_result(self) -> None:
        updates: list[Any] = []

        @tool
        def steps(n: int) -> Any:
            for i in range(n):
                yield f"step {i}"
            return "all done"

        result = asyncio.run(steps.execute("c", steps.bind({"n": 2}), None, updates.append))

        assert [update.text for update in updates] == ["step 0", "step 1"]
        assert result.text == "all done"

    def test_async_generators_end_with_what_they_yielded_last(self) -> None:
        updates: list[Any] = []

        @tool
        async def steps() -> Any:
            yield "a"
            yield {"b": 1}

        result = asyncio.run(steps.execute("c", steps.bind({}), None, updates.append))

        assert [update.text for update in updates] == ["a", '{"b": 1}']
        assert (result.text, result.value) == ('{"b": 1}', {"b": 1})

    def test_an_abort_ends_a_generator_between_two_steps(self) -> None:
        controller = AbortController()
        closed = []

        @tool
        def steps() -> Any:
            try:
                yield from range(1000)
            finally:
                closed.append(True)

        with pytest.raises(Exception, match="stop now"):
            asyncio.run(
                steps.execute("c", steps.bind({}), controller.signal, lambda update: controller.abort("stop now"))
            )
        assert closed == [True]

    def test_track_moves_the_bar(self) -> None:
        updates: list[Any] = []

        @tool
        def f(ctx: ToolContext) -> int:
            return sum(ctx.track([1, 2], "adding"))

        result = asyncio.run(f.execute("c", {}, None, updates.append))

        assert result.value == 3
        assert [update.details for update in updates] == [
            Progress(0, 2, "adding"),
            Progress(1, 2, "adding"),
            Progress(2, 2, "adding"),
        ]

    def test_a_tool_result_is_passed_on_as_it_is(self) -> None:
        shared = ToolResult("short", details={"all": 1}, terminate=True)

        @tool
        def f() -> ToolResult:
            return shared

        result = f.call()

        assert (result.text, result.details, result.terminate, result.value) == ("short", {"all": 1}, True, {"all": 1})
        assert shared.duration_ms is None, "the tool's own object must not be changed"

    def test_a_ctrl_c_in_a_persons_call_reaches_the_person(self) -> None:
        signals = []

        @tool
        def f(ctx: ToolContext) -> None:
            signals.append(ctx.signal)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            f.call()
        assert signals[0].aborted

    def test_a_call_works_inside_a_running_loop(self) -> None:
        @tool
        def f() -> str:
            return threading.current_thread().name

        async def inside() -> Any:
            return f.call().value

        assert asyncio.run(inside()) == threading.current_thread().name


class TestErrors:
    def test_the_model_gets_type_text_and_line(self) -> None:
        @tool
        def f(n: int) -> float:
            inner = n
            return 1 / inner

        result = f.call(n=0)

        line = inspect.getsourcelines(f.function)[1] + 3
        assert result.text == (
            f"ZeroDivisionError: division by zero\nat test_running.py, line {line}, in f: return 1 / inner"
        )
        assert isinstance(result.error, ZeroDivisionError)

    def test_a_tool_error_is_its_text(self) -> None:
        @tool
        async def f() -> None:
            raise ToolError("Try another city.")

        assert f.call().text == "Try another city."

    @pytest.mark.parametrize("raised", [SystemExit(3), StopIteration("end"), GeneratorExit(), KeyError("k")], ids=repr)
    @pytest.mark.parametrize("thread", [None, "worker"])
    def test_no_exception_of_a_tool_ends_more_than_the_tool(self, raised: BaseException, thread: Any) -> None:
        @tool(thread=thread)
        def f() -> None:
            raise raised

        assert f.call().text.startswith((f"RuntimeError: {type(raised).__name__}", "KeyError: 'k'"))

    def test_an_async_tool_that_exits_does_not_end_the_loop(self) -> None:
        @tool
        async def f() -> None:
            sys.exit("bye")

        assert f.call().text.startswith("RuntimeError: SystemExit: bye")

    def test_an_object_of_another_loop_is_named_as_the_cause(self) -> None:
        other = asyncio.new_event_loop()
        future = other.create_future()
        lock = asyncio.Lock()

        async def bind() -> None:
            await lock.acquire()
            waiting = asyncio.ensure_future(lock.acquire())
            await asyncio.sleep(0)
            waiting.cancel()

        other.run_until_complete(bind())

        @tool
        async def awaits() -> None:
            await future

        @tool
        async def locks() -> None:
            await lock.acquire()

        for each in (awaits, locks):
            text = each.call().text
            assert "was made on another event loop" in text
            assert "make the object inside the tool, or make the tool a plain `def`" in text
        other.close()
