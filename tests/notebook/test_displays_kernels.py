"""What tools plot, display and count, in a real kernel."""

from __future__ import annotations

from ..kernels import Session

SETUP = """\
%load_ext pi_notebook
%matplotlib inline
import matplotlib.pyplot as plt
from IPython.display import HTML, display
from pi_notebook import call, scripted, tool

@tool
def plot(n: int) -> str:
    plt.plot(range(n))
    display(HTML("<b>beside</b>"))
    return f"drew {n}"

@tool
def count() -> None:
    from tqdm.auto import tqdm
    for _ in tqdm(range(3), desc="counting"):
        pass

model = scripted([call("plot", n=3), call("count")], "ok")
"""


def test_a_plot_beside_a_returned_text_and_a_bar_imported_inside_stay_in_their_rows(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP)

    cell = newest_kernel.run("%%agent -m model -o result\nGo on.")

    assert cell.status == "ok"
    html = cell.data("text/html")[-1]
    assert html.count('src="data:image/png;base64,') == 1
    assert "beside" in html and "<b>" not in html
    assert newest_kernel.value("[call.result.text for call in result.tool_calls]") == [
        "drew 3",
        "Done. It returned nothing and printed nothing.",
    ]
    assert not any("widget-view" in kind for out in cell.outputs for kind in out.get("data", {}))


IN_ROWS = (
    SETUP
    + """
from IPython.display import clear_output

@tool
def cell(code: str) -> str:
    outcome = get_ipython().run_cell(code)
    return f"its value: {outcome.result}"

@tool
def overwrite() -> None:
    print("a\\rb")

@tool
def clear(wait: bool) -> None:
    print("old line")
    display(HTML("<b>old display</b>"))
    clear_output(wait=wait)
    print("new line")

model = scripted([call("cell", code="x_y = 5\\nx_y + 1"), call("overwrite"), call("clear", wait=True)], "ok")
"""
)


def test_values_of_cells_that_a_tool_runs_and_output_it_rewrites_stay_in_its_row(kernel: Session) -> None:
    assert kernel.run(IN_ROWS).status == "ok"
    cell = kernel.run("%%agent -m model -o result\nGo on.")
    assert cell.status == "ok"
    assert {out["output_type"] for out in cell.outputs} == {"display_data"}
    html = cell.data("text/html")[-1]
    assert ">6<" in html and "new line" in html and "old" not in html and "U+000D" not in html
    assert kernel.value("[call.result.text for call in result.tool_calls]") == ["its value: 6", "b\n", "new line\n"]
    assert kernel.run("x_y + 2").data("text/plain") == ["7"]
