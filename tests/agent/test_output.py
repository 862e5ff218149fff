from __future__ import annotations

import asyncio
import contextvars
import io
import logging
import subprocess
import sys
import threading
from typing import Any

import pytest

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.output import Captured, as_shown, capture_output
from pi_notebook.agent.tool import ConsoleText, Progress, ToolContext
from pi_notebook.ai.apis.scripted import call, scripted


def execute(made: Any, **arguments: Any) -> tuple[Any, list[Any]]:
    """The result of one call, and the details of its updates."""
    updates: list[Any] = []
    result = asyncio.run(made.execute("c", made.bind(arguments), None, lambda update: updates.append(update.details)))
    return result, updates


class TestPrints:
    @pytest.mark.parametrize("thread", [None, "worker"])
    def test_they_stream_line_by_line_and_reach_the_screen(
        self, thread: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        @tool(thread=thread)
        def f() -> None:
            print("one", 1)
            print("two", end="", flush=True)
            print("err", file=sys.stderr)

        result, updates = execute(f)

        assert updates == [ConsoleText("one 1\n"), ConsoleText("two"), ConsoleText("err\n")]
        assert result.text == "one 1\ntwoerr\n"
        assert capsys.readouterr() == ("one 1\ntwo", "err\n")

    def test_parallel_tools_never_mix(self) -> None:
        meeting = threading.Barrier(3, timeout=20)

        @tool(thread="worker")
        def talk(name: str) -> None:
            for i in range(20):
                meeting.wait()
                print(name, i)

        agent = Agent(model=scripted([call("talk", name=name) for name in "abc"], "done"), tools=[talk])
        outcome = asyncio.run(agent.prompt("go"))

        texts = [each.result.text for each in outcome.tool_calls]
        assert sorted(texts) == ["".join(f"{name} {i}\n" for i in range(20)) for name in "abc"]

    def test_async_tools_never_mix(self) -> None:
        @tool
        async def talk(name: str) -> None:
            for i in range(5):
                await asyncio.sleep(0)
                print(name, i)

        agent = Agent(model=scripted([call("talk", name=name) for name in "abc"], "done"), tools=[talk])
        outcome = asyncio.run(agent.prompt("go"))

        texts = [each.result.text for each in outcome.tool_calls]
        assert sorted(texts) == ["".join(f"{name} {i}\n" for i in range(5)) for name in "abc"]

    def test_threads_that_copied_the_context_belong_to_the_call(self) -> None:
        @tool
        def f() -> None:
            context = contextvars.copy_context()
            thread = threading.Thread(target=lambda: context.run(print, "from the thread"))
            thread.start()
            thread.join()

        assert execute(f)[0].text == "from the thread\n"

    def test_prints_outside_of_a_call_are_nobodys(self, capsys: pytest.CaptureFixture[str]) -> None:
        with capture_output(ToolContext()) as captured:
            contextvars.Context().run(print, "outside")
            print("inside")

        assert captured.text == "inside\n"
        assert capsys.readouterr().out == "outside\ninside\n"

    def test_a_listener_that_prints_is_not_told_of_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        with capture_output(ToolContext(on_update=lambda update: print("told", update.details.text))) as captured:
            print("x")

        assert captured.text == "x\n"
        assert capsys.readouterr().out == "x\ntold x\n\n"

    def test_the_streams_are_put_back_and_kept_references_still_work(self, capsys: pytest.CaptureFixture[str]) -> None:
        before = (sys.stdout, sys.stderr)
        with capture_output(ToolContext()) as captured:
            handler = logging.StreamHandler()
            kept = sys.stdout

        assert (sys.stdout, sys.stderr) == before
        handler.emit(logging.LogRecord("n", logging.INFO, "p", 1, "late", None, None))
        kept.write("later\n")
        assert capsys.readouterr() == ("later\n", "late\n")
        assert captured.text == ""

    def test_overlapping_captures_end_in_any_order(self) -> None:
        before = sys.stdout
        first, second = capture_output(ToolContext()), capture_output(ToolContext())
        one, two = contextvars.copy_context(), contextvars.copy_context()
        captured = one.run(first.__enter__)
        other = two.run(second.__enter__)
        one.run(print, "first")
        one.run(first.__exit__, None, None, None)
        two.run(print, "second")
        two.run(second.__exit__, None, None, None)

        assert (captured.text, other.text) == ("first\n", "second\n")
        assert sys.stdout is before

    def test_redirection_inside_a_tool_works(self) -> None:
        from contextlib import redirect_stdout

        @tool
        def f() -> str:
            with redirect_stdout(io.StringIO()) as caught:
                print("hidden")
            print("shown")
            return caught.getvalue()

        result, updates = execute(f)

        assert result.text == "hidden\n"
        assert updates == [ConsoleText("shown\n")]

    def test_a_stream_put_on_top_by_the_tool_does_not_go_round_in_circles(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Tee:
            def __init__(self, below: Any) -> None:
                self.below = below

            def write(self, text: str) -> int:
                return int(self.below.write(text.upper()))

            def flush(self) -> None: ...

        with capture_output(ToolContext()) as captured:
            below = sys.stdout
            sys.stdout = Tee(below)  # type: ignore[assignment]
            print("x")
            sys.stdout = below

        assert captured.text == "X\n"
        assert capsys.readouterr().out == "X\n"

    def test_a_process_without_a_console_can_print(self) -> None:
        code = (
            "import sys\nsys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None\n"
            "from pi_notebook import tool\n@tool\ndef f() -> None:\n    print('x')\n"
            "raise SystemExit(0 if f.call().text == 'x\\n' else 1)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_late_updates_of_an_abandoned_thread_do_no_harm(self) -> None:
        with capture_output(ToolContext()) as captured:
            context = contextvars.copy_context()
        context.run(print, "late")

        assert captured.text in ("", "late\n")


class TestOverwriting:
    @pytest.mark.parametrize(
        ("written", "shown"),
        [
            ("a\rb", "b"),
            ("abc\rx", "xbc"),
            ("10 %\r100 %\rdone \nnext", "done \nnext"),
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("a\r", "a"),
            ("ab\x08c", "ac"),
            ("\x08\x08a", "a"),
            ("long line\x1b[2K\rshort", "short"),
            ("long line\rshort\x1b[K", "short"),
            ("\x1b[32mok\x1b[0m\rno", "no"),
            ("\x1b[32mkept\x1b[0m", "\x1b[32mkept\x1b[0m"),
        ],
    )
    def test_a_line_that_is_written_over_is_told_as_a_terminal_shows_it(self, written: str, shown: str) -> None:
        captured = Captured()
        for character in written:
            captured.write(character)
        assert captured.text == shown

    def test_a_long_bar_on_one_line_takes_no_time(self) -> None:
        assert as_shown("".join(f"\r{n:>80}" for n in range(50_000))) == f"{49_999:>80}"


class TestClearing:
    def test_what_is_cleared_is_forgotten_and_listeners_are_told(self) -> None:
        captured = Captured(on_clear=lambda: told.append(captured.text))
        told: list[str] = []
        captured.write("old\n")
        captured.show({"text/plain": "old"})
        captured.clear()
        assert (captured.text, captured.displays, told) == ("", [], [""])
        captured.write("new")
        assert (captured.text, len(told)) == ("new", 1)

    @pytest.mark.parametrize("new", ["text", "display"])
    def test_a_clear_that_waits_comes_with_what_is_new(self, new: str) -> None:
        captured = Captured()
        captured.write("old")
        captured.show("old")
        captured.clear(wait=True)
        assert (captured.text, captured.displays) == ("old", ["old"])
        if new == "text":
            captured.write("new")
        else:
            captured.show("new")
        assert (captured.text, captured.displays) == (("new", []) if new == "text" else ("", ["new"]))


class TestFigures:
    def test_figures_of_calls_that_follow_each_other_never_mix(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        @tool(execution_mode="sequential")
        def draw(n: int) -> None:
            plt.plot(range(n))

        agent = Agent(model=scripted([call("draw", n=1), call("draw", n=2)], "done"), tools=[draw])
        outcome = asyncio.run(agent.prompt("go"))

        figures = [each.result.details.displays for each in outcome.tool_calls]
        assert [len(each) for each in figures] == [1, 1]
        assert [len(each[0].axes[0].lines[0].get_xdata()) for each in figures] == [1, 2]
        assert [each.result.content[0].type for each in outcome.tool_calls] == ["image", "image"]
        assert plt.get_fignums() == []

    def test_figures_of_plain_tools_on_one_thread_never_mix(self) -> None:
        """As in a notebook: a batch of plain tools takes turns on the main thread."""
        import concurrent.futures

        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        from pi_notebook.agent.tool import Host
        from pi_notebook.agent.workers import outcome_of

        main_thread = concurrent.futures.ThreadPoolExecutor(1)

        class OneThread(Host):
            async def run_plain(self, function: Any, context: ToolContext) -> Any:
                return await outcome_of(main_thread.submit(contextvars.copy_context().run, function))

        @tool
        def draw(n: int) -> None:
            plt.plot(range(n))

        @tool
        async def draw_aside(n: int) -> None:
            plt.figure()
            await asyncio.sleep(0.01)
            plt.figure().suptitle(f"{n}")

        calls = [call("draw", n=n) for n in range(1, 9)]
        agent = Agent(
            model=scripted(calls, [call("draw_aside", n=0)], "done"), tools=[draw, draw_aside], host=OneThread()
        )
        with main_thread:
            outcome = asyncio.run(agent.prompt("go"))

        for each in outcome.tool_calls:
            displays = each.result.details.displays
            if each.name == "draw":
                drawn = [[len(line.get_xdata()) for line in figure.axes[0].lines] for figure in displays]
                assert drawn == [[each.arguments["n"]]]
            else:
                assert len(displays) == 2
        assert len(outcome.tool_calls) == 9
        assert plt.get_fignums() == []

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_figures_of_calls_that_run_at_the_same_time_never_mix(self, asynchronous: bool) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        together = threading.Barrier(3)
        arrived: list[int] = []

        @tool
        def draw(n: int) -> None:
            together.wait(10)
            plt.plot(range(n))
            together.wait(10)
            plt.title(str(n))

        @tool
        async def draw_beside(n: int) -> None:
            plt.plot(range(n))
            arrived.append(n)
            while len(arrived) < 3:
                await asyncio.sleep(0)
            plt.title(str(n))

        mine = plt.figure("mine")
        used = draw_beside if asynchronous else draw
        agent = Agent(model=scripted([call(used.name, n=n) for n in (1, 2, 3)], "done"), tools=[used])
        outcome = asyncio.run(agent.prompt("go"))

        for each in outcome.tool_calls:
            (figure,) = each.result.details.displays
            (axes,) = figure.axes
            assert [len(line.get_xdata()) for line in axes.lines] == [each.arguments["n"]]
            assert axes.get_title() == str(each.arguments["n"])
        assert mine.axes == [] and plt.get_figlabels() == ["mine"]
        plt.close("all")

    def test_figures_that_were_open_before_stay_open(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        plt.figure("mine")
        with capture_output(ToolContext()) as captured:
            plt.figure()

        assert plt.get_figlabels() == ["mine"]
        assert len(captured.displays) == 1
        plt.close("all")

    def test_a_figure_that_the_tool_closed_is_not_shown(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        hooks = list(matplotlib.rcParams["figure.hooks"])
        with capture_output(ToolContext()) as captured:
            plt.close(plt.figure())

        assert captured.displays == []
        assert matplotlib.rcParams["figure.hooks"] == hooks

    def test_pyplot_imported_inside_the_tool(self) -> None:
        code = (
            "from pi_notebook import tool\n@tool\ndef f() -> None:\n"
            "    import matplotlib\n    matplotlib.use('agg')\n"
            "    import matplotlib.pyplot as plt\n    plt.plot([1])\n"
            "for _ in range(2):\n    assert [block.type for block in f.call().content] == ['image']\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


class TestTqdm:
    def test_a_bar_moves_the_progress_of_the_call_and_writes_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        from tqdm import tqdm

        @tool
        def f() -> None:
            for _ in tqdm(range(3), desc="loading", mininterval=0):
                pass

        result, updates = execute(f)

        assert updates[0] == Progress(0, 3, "loading")
        assert updates[-1] == Progress(3, 3, "loading")
        assert "returned nothing" in result.text
        assert capsys.readouterr() == ("", "")

    def test_of_nested_bars_the_outer_one_counts(self) -> None:
        from tqdm import tqdm

        @tool
        def f() -> int:
            for _ in tqdm(range(2), desc="outer", mininterval=0):
                for _ in tqdm(range(50), desc="inner", mininterval=0):
                    pass
            for _ in tqdm(range(1), desc="next", mininterval=0):
                pass
            return 1

        _, updates = execute(f)

        assert [update.text for update in updates if update.done == update.total] == ["outer", "outer", "next", "next"]
        assert {update.text for update in updates} == {"outer", "next"}

    def test_parallel_bars_go_to_their_own_calls(self) -> None:
        from tqdm import tqdm

        meeting = threading.Barrier(2, timeout=20)

        @tool(thread="worker")
        def f(name: str) -> int:
            for _ in tqdm(range(3), desc=name, mininterval=0):
                meeting.wait()
            return 1

        seen: dict[str, set[str]] = {}

        def listen(event: Any, *rest: Any) -> None:
            if event.type == "tool_execution_update" and isinstance(event.partial_result.details, Progress):
                seen.setdefault(event.args["name"], set()).add(event.partial_result.details.text)

        agent = Agent(model=scripted([call("f", name="a"), call("f", name="b")], "done"), tools=[f])
        agent.subscribe(listen)
        asyncio.run(agent.prompt("go"))

        assert seen == {"a": {"a"}, "b": {"b"}}

    def test_a_bar_outside_of_a_tool_is_drawn(self) -> None:
        from tqdm import tqdm

        out = io.StringIO()
        for _ in tqdm(range(2), file=out):
            pass

        assert "2/2" in out.getvalue()

    def test_tqdm_imported_inside_the_tool(self) -> None:
        code = (
            "import asyncio, sys\nfrom pi_notebook import tool\nfrom pi_notebook.agent.tool import Progress\n"
            "@tool\ndef f() -> None:\n    from tqdm import tqdm\n"
            "    for _ in tqdm(range(3), mininterval=0): pass\n"
            "seen = []\n"
            "result = asyncio.run(f.execute('c', f.bind({}), None, lambda u: seen.append(u.details)))\n"
            "assert seen[-1] == Progress(3, 3), seen\n"
            "assert 'printed nothing' in result.text, result.text\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
