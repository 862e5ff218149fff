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
