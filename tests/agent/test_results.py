from __future__ import annotations

import base64
import dataclasses
import io
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent._cut import MAX_BYTES, MAX_LINES, cut_middle
from pi_notebook.agent._json_form import json_text
from pi_notebook.agent.output import Captured
from pi_notebook.agent.results import MAX_IMAGES, NOTHING, html_text, to_content, to_tool_result
from pi_notebook.agent.tool import Progress, ToolResult
from pi_notebook.ai.messages import ImageContent, TextContent

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def text_of(value: Any, captured: Captured | None = None) -> str:
    (block,) = to_content(value, captured)
    assert isinstance(block, TextContent)
    return block.text


class TestNothingReturned:
    def test_what_was_printed_is_the_result(self) -> None:
        captured = Captured()
        captured.write("one\n")
        captured.write("two\n")

        result = to_tool_result(None, captured)

        assert result.text == "one\ntwo\n"
        assert (result.value, result.details) == (None, captured)

    def test_what_was_displayed_is_the_result(self) -> None:
        captured = Captured()
        captured.displays += [{"image/png": base64.b64encode(PNG).decode(), "text/plain": "<Figure>"}, "a text"]

        assert to_content(None, captured) == [
            ImageContent(base64.b64encode(PNG).decode(), "image/png"),
            TextContent("a text"),
        ]

    def test_nothing_at_all_is_said(self) -> None:
        assert text_of(None, Captured()) == NOTHING
        assert to_tool_result(None).details is None

    def test_prints_do_not_mix_with_a_returned_value(self) -> None:
        captured = Captured()
        captured.write("noise")

        assert text_of("value", captured) == "value"


class TestDisplayedBesidesAValue:
    def test_a_plot_beside_a_returned_text_is_for_the_person(self) -> None:
        captured = Captured()
        captured.displays += [{"image/png": base64.b64encode(PNG).decode()}, "a text"]

        result = to_tool_result("the mean is 3", captured)

        assert result.content == (TextContent("the mean is 3"),)
        assert result.displayed == [ImageContent(base64.b64encode(PNG).decode(), "image/png"), TextContent("a text")]
        assert to_tool_result(ToolResult("own"), captured).displayed == tuple(result.displayed)

    @pytest.mark.parametrize("returned", [lambda f: f, lambda f: [f, "text"], lambda f: {"plot": f.gca()}])
    def test_a_returned_figure_is_not_shown_twice(self, returned: Any) -> None:
        from matplotlib.figure import Figure

        figure = Figure()
        captured = Captured()
        captured.displays.append(figure)

        assert list(to_tool_result(returned(figure), captured).displayed) == []

    def test_a_display_that_fails_says_so(self) -> None:
        class Broken(dict[str, Any]):
            def get(self, *_: Any) -> Any:
                raise ValueError("no")

        captured = Captured()
        captured.displays.append(Broken())

        (block,) = to_tool_result(1, captured).displayed
        assert block == TextContent("[what was displayed cannot be shown: ValueError: no]")


class TestRichObjects:
    def test_the_value_is_kept_whole_for_the_person(self) -> None:
        import pandas as pd

        frame = pd.DataFrame({"n": range(10_000)})
        result = to_tool_result(frame)

        assert result.details is frame
        assert result.value is frame

    def test_a_long_table_is_shown_by_head_and_tail(self) -> None:
        import pandas as pd

        lines = text_of(pd.DataFrame({"n": range(1000), "s": ["a|b\nc"] * 1000}, index=range(5, 1005))).split("\n")

        assert lines[0] == "DataFrame: 1,000 rows x 2 columns"
        assert lines[3] == "|  | n | s |"
        assert lines[5] == "| 5 | 0 | a\\|b c |"
        assert lines[10] == "| ... | ... | ... |"
        assert lines[15] == "| 1004 | 999 | a\\|b c |"
        assert len(lines) == 16

    def test_a_wide_table_is_shown_by_its_outer_columns(self) -> None:
        import pandas as pd

        text = text_of(pd.DataFrame([range(100)], columns=[f"c{i}" for i in range(100)]))

        assert text.startswith("DataFrame: 1 row x 100 columns\nColumns: c0 int64, c1 int64, ")
        assert "... (70 more)" in text
        assert "| c14 | ... | c85 |" in text

    @pytest.mark.parametrize(
        "make",
        [
            lambda pd: pd.DataFrame(),
            lambda pd: pd.DataFrame({"a": []}),
            lambda pd: pd.DataFrame([[1, 2]], columns=["a", "a"]),
            lambda pd: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
            lambda pd: pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([("a", 1)], names=["k", None])),
            lambda pd: pd.DataFrame({"x": pd.Categorical(["a", None]), "y": pd.to_datetime(["2024-01-01", None])}),
            lambda pd: pd.DataFrame({"x": [object(), {"deep": [1]}]}),
            lambda pd: pd.Series([], dtype=float),
            lambda pd: pd.Series({"a": 1, "b": 2}),
            lambda pd: pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]),
            lambda pd: pd.DatetimeIndex(["2024-01-01"]),
        ],
    )
    def test_any_table_has_a_text(self, make: Any) -> None:
        import pandas as pd

        assert "could not be shown" not in text_of(make(pd))
        assert text_of(make(pd)).split(":")[0].split(" ")[0] in ("DataFrame", "Series", "Index")

    @pytest.mark.parametrize(
        ("make", "start"),
        [
            (lambda np: np.zeros((0, 3)), "ndarray: shape (0, 3), float64"),
            (lambda np: np.array([np.nan, 1.0]), "ndarray: shape (2,), float64; min 1, mean 1, max 1; 1 not finite"),
            (lambda np: np.array([True, False]), "ndarray: shape (2,), bool; 1 true"),
            (lambda np: np.array(["a"]), "ndarray: shape (1,), <U1"),
            (lambda np: np.array([1 + 2j]), "ndarray: shape (1,), complex128"),
            (lambda np: np.arange(1_000_000), "ndarray: shape (1000000,), int64; min 0, mean 500000, max 999999"),
            (lambda np: np.array([{"a": 1}], dtype=object), "ndarray: shape (1,), object"),
        ],
    )
    def test_arrays_are_summed_up(self, make: Any, start: str) -> None:
        import numpy as np

        text = text_of(make(np))

        assert text.startswith(start)
        assert len(text) < 1000

    def test_matplotlib_in_every_shape_it_comes_in(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2)
        lines = axes[0].plot([1, 2])
        for value in (figure, axes[0], axes, lines, lines[0], axes[1].bar([1, 2], [3, 4])):
            (block,) = to_content(value)
            assert isinstance(block, ImageContent)
            assert base64.b64decode(block.data).startswith(PNG[:8])
        plt.close(figure)

    def test_seaborn_grids_are_figures(self) -> None:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt
        import pandas as pd
        import seaborn as sns

        grid = sns.FacetGrid(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), col="a")
        (block,) = to_content(grid)
        plt.close(grid.figure)

        assert isinstance(block, ImageContent)

    def test_large_images_are_made_smaller(self) -> None:
        from PIL import Image

        (block,) = to_content(Image.new("CMYK", (4000, 100)))

        assert isinstance(block, ImageContent)
        assert Image.open(io.BytesIO(base64.b64decode(block.data))).size == (1568, 39)

    def test_altair_charts_and_plotly_figures_are_pictures(self) -> None:
        import altair
        import pandas as pd
        import plotly.graph_objects as go

        chart = altair.Chart(pd.DataFrame({"a": [1]})).mark_point().encode(x="a:Q")
        for value in (chart, go.Figure(go.Scatter(x=[1, 2], y=[1, 2]))):
            (block,) = to_content(value)
            assert isinstance(block, ImageContent), block
            assert base64.b64decode(block.data).startswith(PNG[:8])

    def test_a_plotly_figure_whose_page_was_not_ready_is_drawn_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import plotly.graph_objects as go

        class JavascriptError(Exception): ...

        asked = []

        def to_image(self: Any, format: str) -> bytes:
            asked.append(format)
            if len(asked) == 1:
                raise JavascriptError("kaleido is not defined")
            return PNG

        monkeypatch.setattr(go.Figure, "to_image", to_image)
        (block,) = to_content(go.Figure())

        assert block == ImageContent(base64.b64encode(PNG).decode(), "image/png")
        assert asked == ["png", "png"]

    def test_a_figure_that_cannot_be_drawn_says_what_it_needs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import plotly.graph_objects as go

        def fail(self: Any, **options: Any) -> bytes:
            raise ValueError("no browser\nlong story")

        monkeypatch.setattr(go.Figure, "to_image", fail)

        assert text_of(go.Figure()) == (
            "[plotly Figure; no picture of it could be made (ValueError: no browser; it needs the package kaleido)]"
        )

    def test_an_object_shows_itself_as_it_would_in_a_notebook(self) -> None:
        class Markdown:
            def _repr_markdown_(self) -> str:
                return "**bold**"

            def _repr_html_(self) -> str:
                return "<b>bold</b>"

        class Html:
            def _repr_html_(self) -> str:
                return "<style>b{}</style><p>Tom &amp; <b>Jerry</b></p><script>x()</script>"

        class Png:
            def _repr_png_(self) -> Any:
                return PNG, {"width": 1}

        class Bundle:
            def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
                return {"text/html": "<i>x</i>", "text/plain": "plain"}

        assert text_of(Markdown()) == "**bold**"
        assert text_of(Html()) == "Tom & Jerry"
        assert to_content(Png()) == [ImageContent(base64.b64encode(PNG).decode(), "image/png")]
        assert text_of(Bundle()) == "plain"

    def test_bytes_of_an_image_are_the_image(self) -> None:
        assert to_content(PNG) == [ImageContent(base64.b64encode(PNG).decode(), "image/png")]

    def test_methods_that_fail_do_not_fail_the_call(self) -> None:
        class Broken:
            def _repr_html_(self) -> str:
                raise RuntimeError("html")

            def __str__(self) -> str:
                raise RuntimeError("str")

        assert "Broken whose text cannot be shown: RuntimeError" in text_of(Broken())
        assert "Broken whose text cannot be shown" in text_of([1, {"a": Broken()}])

    def test_an_object_that_has_every_attribute_is_not_taken_for_rich(self) -> None:
        class Anything:
            def __getattr__(self, name: str) -> Any:
                return lambda *args, **kwargs: "surprise"

        assert "surprise" not in text_of(Anything())

    def test_lists_and_dicts_that_mix_rich_and_plain_keep_the_order(self) -> None:
        import pandas as pd

        frame = pd.DataFrame({"n": [1]})
        table = text_of(frame)

        assert to_content(["Before", frame, PNG, 3, None]) == [
            TextContent(f"Before\n\n{table}"),
            ImageContent(base64.b64encode(PNG).decode(), "image/png"),
            TextContent("3\n\nnull"),
        ]
        assert text_of({"table": frame, "n": 3}) == f"table:\n\n{table}\n\nn:\n\n3"

    def test_short_arrays_inside_are_json(self) -> None:
        import numpy as np
        import pandas as pd

        assert text_of({"mean": np.array([1.5, np.nan]), "s": pd.Series([1, 2])}) == (
            '{"mean": [1.5, null], "s": {"0": 1, "1": 2}}'
        )

    def test_no_library_is_imported_for_a_result(self) -> None:
        import subprocess

        code = (
            "import sys\nfrom pi_notebook.agent.results import to_content\n"
            "to_content([1, {'a': object()}, b'x'])\n"
            "for name in ('numpy', 'pandas', 'matplotlib', 'PIL', 'pydantic'):\n"
            "    assert name not in sys.modules, name"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class TestToolResults:
    def test_content_of_any_kind_is_made_content(self) -> None:
        import pandas as pd

        result = to_tool_result(ToolResult(["text", pd.DataFrame({"n": [1]})]))

        assert result.text.startswith("textDataFrame: 1 row")

    def test_it_is_a_copy(self) -> None:
        given = ToolResult("a")

        result = to_tool_result(given)
        result.duration_ms = 3

        assert (result.text, result.value) == ("a", "a")
        assert (given.duration_ms, given.value) == (None, None)

    def test_progress_is_details_alone(self) -> None:
        assert to_tool_result(Progress(1, 2)) == ToolResult((), Progress(1, 2))


class TestJson:
    def test_circles_end(self) -> None:
        circle: list[Any] = [1]
        circle.append(circle)

        assert json_text(circle) == '[1, "..."]'
        assert json_text([[circle], [circle]]) == '[[[1, "..."]], [[1, "..."]]]'

    def test_secrets_of_a_model_stay_secret(self) -> None:
        from pydantic import BaseModel, Field, SecretStr

        class Login(BaseModel):
            user: str
            password: SecretStr
            token: str = Field(exclude=True)

        assert text_of(Login(user="a", password="b", token="c")) == '{"user": "a", "password": "**********"}'  # type: ignore[arg-type]

    def test_a_field_that_its_repr_leaves_out_is_left_out(self) -> None:
        """Of a dataclass, an attrs class and a pydantic model, also of one inside another."""
        import attrs
        from pydantic import BaseModel, Field, computed_field
        from pydantic.dataclasses import dataclass as pydantic_dataclass

        @dataclasses.dataclass(slots=True)
        class Login:
            user: str
            password: str = dataclasses.field(default="pw", repr=False)

        @attrs.define
        class Attrs:
            user: str
            password: str = attrs.field(default="pw", repr=False)
            token: str = attrs.field(default="pw", repr=lambda value: "***")

        @pydantic_dataclass
        class Checked:
            user: str
            password: str = Field(default="pw", repr=False)

        class Settings(BaseModel):
            user: str
            password: str = Field(default="pw", repr=False)

            @computed_field(repr=False)  # type: ignore[prop-decorator]
            @property
            def url(self) -> str:
                return f"https://{self.password}@example.com"

        class Outer(BaseModel):
            one: Settings
            some: list[Settings]
            by_name: dict[str, tuple[int, Login]]

        settings = Settings(user="a")
        assert json_text([Login("a"), Attrs("a"), Checked("a"), settings]) == (
            '[{"user": "a"}, {"user": "a", "token": "***"}, {"user": "a"}, {"user": "a"}]'
        )
        assert text_of(Outer(one=settings, some=[settings], by_name={"x": (1, Login("a"))})) == (
            '{"one": {"user": "a"}, "some": [{"user": "a"}], "by_name": {"x": [1, {"user": "a"}]}}'
        )

    def test_a_model_with_a_field_that_has_no_json_form(self) -> None:
        from pydantic import BaseModel, ConfigDict

        class Odd(BaseModel):
            model_config = ConfigDict(arbitrary_types_allowed=True)
            n: int
            thing: BaseException

        assert text_of(Odd(n=1, thing=ValueError("x"))) == '{"n": 1, "thing": "ValueError: x"}'

    def test_keys_become_texts(self) -> None:
        assert json_text({1: "a", (1, 2): "b", None: "c", 0.5: "d"}) == (
            '{"1": "a", "[1, 2]": "b", "null": "c", "0.5": "d"}'
        )

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text()
            | st.binary()
            | st.dates()
            | st.decimals(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner)
                | st.frozensets(st.integers() | st.text() | st.floats())
                | st.tuples(inner, inner)
            ),
            max_leaves=20,
        )
    )
    def test_any_value_gives_valid_json(self, value: Any) -> None:
        json.loads(json_text(value), parse_constant=lambda constant: pytest.fail(constant))


class TestLimits:
    def test_long_texts_keep_head_and_tail_and_name_the_size(self) -> None:
        text = "".join(f"line {i}\n" for i in range(10_000))
        cut = text_of(text)

        assert cut.startswith("line 0\nline 1\n")
        assert cut.endswith("line 9998\nline 9999\n")
        assert "[... 8,000 lines, 78.1 KB left out of 10,000 lines, 96.6 KB ...]" in cut
        assert to_tool_result(text).value == text

    def test_one_long_line_is_cut_too(self) -> None:
        cut = text_of("x" * 200_000)

        assert len(cut.encode()) < MAX_BYTES + 200
        assert "\n[... 145.3 KB left out of 195.3 KB ...]\n" in cut

    def test_what_is_within_the_limits_is_whole(self) -> None:
        text = "line\n" * MAX_LINES
        assert cut_middle(text) == text

    @given(st.text(alphabet="a\né€😀 ", max_size=400), st.integers(1, 20), st.integers(8, 200))
    def test_cuts_keep_the_limits_and_no_half_characters(self, text: str, lines: int, size: int) -> None:
        cut = cut_middle(text, lines, size)

        if cut == text:
            return
        head, _, rest = cut.partition("[... ")
        tail = rest.partition(" ...]\n")[2]
        assert text.startswith(head.rstrip("\n"))
        assert text.endswith(tail)
        assert len((head + tail).encode()) <= size + 1
        assert (head + tail).count("\n") <= lines + 1

    def test_several_texts_share_the_limit(self) -> None:
        from pi_notebook.agent.results import _limited

        blocks = [TextContent("a" * 40_000), ImageContent("", "image/png"), TextContent("b" * 40_000), TextContent("c")]
        cut = _limited(list(blocks))

        assert sum(len(block.text) for block in cut if isinstance(block, TextContent)) < MAX_BYTES + 500
        assert cut[3] == blocks[3]

    def test_images_have_a_limit(self) -> None:
        blocks = to_content([PNG] * 50)

        assert len(blocks) == MAX_IMAGES + 1
        assert blocks[-1] == TextContent("[... 30 of 50 images left out ...]")


def test_html_becomes_its_text() -> None:
    assert html_text("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>a<br>b &lt;c&gt;") == (
        "1\t2\n3\na\nb <c>"
    )
