"""`{name}` in a prompt: what is inserted, and that all else stays byte for byte."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent.results import variable_content
from pi_notebook.notebook.prompt import RenderedPrompt, render_prompt, render_system

NAMESPACE: dict[str, Any] = {
    "name": "Ada",
    "n": 3,
    "sales": pd.DataFrame({"price": [1.5, 2.5]}),
    "rows": ["first", "second"],
    "d": {"k": "value", "a b": 1, 'q"': 2, 2: "two", (0, 1): "pair", "}": "brace"},
    "cfg": types.SimpleNamespace(path="out", inner=types.SimpleNamespace(depth=2), _hidden=1),
    "v": 7,
    "_x": "private",
    "In": ["x"],
    "Out": {1: "x"},
    "get_ipython": print,
    "json": types,
}


def render(text: str, **more: Any) -> RenderedPrompt:
    return render_prompt(text, NAMESPACE | more, variable_content)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("hello {name}", "hello Ada"),
        ("{name}{n}", "Ada3"),
        ("{rows[0]} {rows[-1]}", "first second"),
        ("""{d["k"]} {d['k']} {d['a b']} {d[2]}""", "value value 1 two"),
        (r"""{d["q\""]} {d[0, 1]} {d["}"]}""", "2 pair brace"),
        ("{cfg.path}/{cfg.inner.depth}", "out/2"),
        ("{sales.shape[0]} rows", "2 rows"),
        ('{sales.loc[0, "price"]}', "1.5"),
        ('JSON: {"who": {name}}', 'JSON: {"who": Ada}'),
        ("a { stray and {name}", "a { stray and Ada"),
        ("stray } and {name}", "stray } and Ada"),
        ("{ {name} }", "{ Ada }"),
        ("set {a, {n}, b}", "set {a, 3, b}"),
        ("costs $ {n}", "costs $ 3"),
        ("file_{n}.csv from $5 to $6", "file_3.csv from $5 to $6"),
        ("$5 for file_{n}, $6 more", "$5 for file_3, $6 more"),
        ("no command: \\{n}", "no command: \\3"),
    ],
)
def test_fields_become_values(text: str, sent: str) -> None:
    assert render(text).text == sent


@pytest.mark.parametrize(
    "text",
    [
        """explain {"a": 1}, print({'k': 'v'}), {v:k for k,v in d.items()}, {}, css { color: red; }""",
        "{ name }",
        "{name",
        "name}",
        "{}",
        "{0}",
        "{name!r} {n:.2f} {n:>10}",
        "{name.upper()} {len(name)} {rows[n]} {rows[0:1]} {n + 1}",
        "{_x} {__name__} {In} {Out} {Out[1]} {get_ipython}",
        "{cfg._hidden} {cfg.__class__}",
        "{missing} {missing.name}",
        "{json}",
        "{{name}} {{ name }} {{a {name} b}} {{{name}}}",
        '{{ {"a": {name}} }}',
        "{{a}, {name}, {b}}",
        "{{name}",
        "${name} ${a {name} b} $${name}",
        r"\frac{name}{n} \frac{a}{\text{name}} \mathbf{a {name} b}",
        r"\sqrt[3]{n} \section*{name} \sum_{n}^{n} x \begin{name}{n}\end{name} \cmd[{name}]{n}",
        "$x_{n}$ and $$\\n a^{n}_{name} \\n$$",
        "`{name}` ``{name} ` {n}`` `two\nlines {name}`",
        "```\n{name}\n```",
        "```python\nx = {name}\n\n{n}\n```",
        "~~~\n{name}\n```\n{n}\n~~~",
        "````\n```\n{name}\n```\n{n}\n````",
        "```\nnever closed {name}\n\n{n}",
        "- list\n  ```\n  {name}\n  ```",
        "1. ```\n   {name}\n   ```",
        "> ```\n> {name}\n> ```",
        "```\r\n{name}\r\n```\r\n",
        "\u2028{\u2029}\x00{\ud800}",
    ],
)
def test_all_else_stays_byte_for_byte(text: str) -> None:
    rendered = render(text)
    assert (rendered.text, rendered.inserted) == (text, [])


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("```\n{name}\n```\n{name}", "```\n{name}\n```\nAda"),
        ("```\r\n{name}\r\n```\r\n{name}", "```\r\n{name}\r\n```\r\nAda"),
        ("```inline {name}``` {n}", "```inline {name}``` 3"),
        ("a lone ` and {name}", "a lone ` and Ada"),
        ("a ` in one\n\n{name} ` in another", "a ` in one\n\nAda ` in another"),
        ("``{name}` {n}`` {n}", "``{name}` {n}`` 3"),
        ("`a` {name} `b`", "`a` Ada `b`"),
        (r"\alpha {name} \beta{n} {n}", r"\alpha Ada \beta{n} 3"),
        (r"\frac{a}{b}, {name}", r"\frac{a}{b}, Ada"),
        ("{{x}} {name} {{y}}", "{{x}} Ada {{y}}"),
        ("${x}{name}", "${x}Ada"),
    ],
)
def test_what_follows_a_literal_part_is_scanned_again(text: str, sent: str) -> None:
    assert render(text).text == sent


def test_an_inserted_text_is_never_scanned() -> None:
    assert render("{a}{b}", a="{name} {", b="name} `").text == "{name} {name} `"
    assert render("{a}{name}`", a="`").text == "`Ada`"


@given(st.text(alphabet=st.sampled_from("{}`~$\\ \n\r\t.[]\"'x1_:!(),ab\u00e9"), max_size=60))
def test_without_variables_every_text_stays_as_it_is(text: str) -> None:
    rendered = render_prompt(text, {"unrelated_variable": 1}, variable_content)
    assert (rendered.text, rendered.inserted) == (text, [])


@given(st.lists(st.sampled_from(["{x}", "{y}", "`", "``", "```\n", "{", "}", "$", "\\a", "\n\n", " ", "{{", "t"])))
def test_a_value_stands_for_its_field_and_nothing_else_changes(parts: list[str]) -> None:
    text = "".join(parts)
    rendered = render_prompt(text, {"x": "X{y}X"}, variable_content)
    assert rendered.text.replace("X{y}X", "{x}") == text
    assert bool(rendered.inserted) == ("X{y}X" in rendered.text)


@given(st.text(max_size=200))
def test_an_inserted_text_is_whole(value: str) -> None:
    assert render_prompt("<{x}>", {"x": value}, variable_content).text == f"<{value}>"


def test_a_table_is_a_preview_with_its_name() -> None:
    rendered = render("Mean of {sales}?")
    assert rendered.text.startswith("Mean of `sales`:\n") and "price" in rendered.text and rendered.text.endswith("?")
    assert rendered.inserted == ["sales: DataFrame, 2 x 1"]


@dataclasses.dataclass
class Run:
    steps: tuple[int, ...] = (1,)
    best: float | None = None
    token: str = dataclasses.field(default="secret", repr=False)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (None, "None"),
        (True, "True"),
        ((1,), "(1,)"),
        ((), "()"),
        ([None, 1, "a"], "[None, 1, 'a']"),
        ({"a": None, 2: (3, [False])}, "{'a': None, 2: (3, [False])}"),
        (set(), "set()"),
        ({"b", "a"}, "{'a', 'b'}"),
        (frozenset({1}), "frozenset({1})"),
        (frozenset(), "frozenset()"),
        (range(3), "range(0, 3)"),
        (1 + 2j, "(1+2j)"),
        (b"abc", "abc"),
        (float("nan"), "nan"),
        (np.float64(1.5), "1.5"),
        ([np.float64(1.5), np.int64(2), np.bool_(True), float("nan")], "[1.5, 2, True, nan]"),
        (pd.NaT, "NaT"),
        ([pd.NA, None], "[<NA>, None]"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        ([datetime.date(2024, 1, 2)], "['2024-01-02']"),
        ({"when": pd.Timestamp("2024-01-02")}, "{'when': '2024-01-02T00:00:00'}"),
        (Run(), "{'steps': (1,), 'best': None}"),
        (collections.Counter("aab"), "{'a': 2, 'b': 1}"),
        (collections.deque([1, None]), "[1, None]"),
    ],
)
def test_a_value_stands_as_python_writes_it(value: Any, sent: str) -> None:
    where = {"v": value, "box": types.SimpleNamespace(v=value), "d": {"k": value}, "items": [value]}
    assert render("x {v} {box.v} {d['k']} {items[0]} y", **where).text == f"x {sent} {sent} {sent} {sent} y"
    assert render_system("x {v} y", where, variable_content)[0] == f"x {sent} y"


def test_none_beside_a_table_is_none() -> None:
    assert render("{pair}", pair=[None, pd.DataFrame({"a": [1]})]).text.startswith("`pair`:\nNone\n\nDataFrame: 1 row")


def test_a_value_that_holds_itself_ends() -> None:
    circle: list[Any] = [1]
    circle.append((circle,))
    assert render("{circle}", circle=circle).text == "[1, (...,)]"


def test_a_text_of_several_lines_stands_as_it_is() -> None:
    assert render("<{long}>", long="a\nb").text == "<a\nb>"


def test_a_figure_is_an_image_between_the_texts() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([1, 2])
    rendered = render("What is {figure}?", figure=figure)
    assert [block.type for block in rendered.content] == ["text", "image", "text"]
    assert rendered.content[0].text == "What is `figure`:\n"  # type: ignore[union-attr]
    assert rendered.inserted == ["figure: Figure"]


def test_a_huge_value_is_cut_and_the_list_says_so() -> None:
    rendered = render("{long}", long="x" * 1_000_000)
    assert len(rendered.text) < 60_000
    assert rendered.inserted == ["long: str, 1,000,000 characters, cut"]


def test_what_was_inserted_is_listed_with_type_and_size() -> None:
    assert render("{name} {n} {rows} {d['k']} {b}", b=b"abc").inserted == [
        "name: str, 3 characters",
        "n: int",
        "rows: list, 2 items",
        "d['k']: str, 5 characters",
        "b: bytes, 3 bytes",
    ]


def test_what_is_inserted_twice_is_listed_once() -> None:
    assert render("{n} {n}").inserted == ["n: int"]


class Hostile:
    """Everything about it fails."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit("leave")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("no\nitems")

    def __repr__(self) -> str:
        raise ValueError("no repr")


class BadError(Exception):
    def __str__(self) -> str:
        raise ValueError


class Property:
    @property
    def value(self) -> Any:
        raise BadError

    @property
    def asked(self) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("{slaes}", "{slaes} was sent as it is: there is no variable 'slaes'. Did you mean 'sales'?"),
        ("{d['x']}", "{d['x']} was sent as it is: KeyError: 'x'"),
        ("{rows[9]}", "{rows[9]} was sent as it is: IndexError: list index out of range"),
        ("{cfg.nope}", "{cfg.nope} was sent as it is: AttributeError: "),
        ("{cfg._hidden}", "{cfg._hidden} was sent as it is: '_hidden' is private."),
        ("{json}", "{json} was sent as it is: it is a module."),
        ("{n[007]}", "{n[007]} was sent as it is: 007 is no index."),
        ("{hostile.x}", "{hostile.x} was sent as it is: SystemExit: leave"),
        ("{hostile[0]}", "{hostile[0]} was sent as it is: RuntimeError: no items"),
        ("{prop.value}", "{prop.value} was sent as it is: BadError"),
        ("{n:.2f}", "{n:.2f} was sent as it is: prompts take no conversions and format specs; "),
        ("{name!r}", "{name!r} was sent as it is: prompts take no conversions and format specs; "),
        ("{rows[0:1]}", "{rows[0:1]} was sent as it is: prompts take no slices; put it into a variable first."),
        ("{rows[-2:]}", "{rows[-2:]} was sent as it is: prompts take no slices; "),
        ("{d['k'][::2]}", "{d['k'][::2]} was sent as it is: prompts take no slices; "),
        ("{d[k]}", "{d[k]} was sent as it is: an index is a number or a text in quotes; put it into a variable first."),
        ("{rows[n].upper()}", "{rows[n].upper()} was sent as it is: an index is a number or a text in quotes; "),
        ("{sales[['price']]}", "{sales[['price']]} was sent as it is: an index is a number or a text in quotes; "),
        ("{sales[sales.price > 1]}", "{sales[sales.price > 1]} was sent as it is: an index is a number or a text in"),
        ("{rows[0].upper()}", "{rows[0].upper()} was sent as it is: prompts take no calls; "),
        ("{sales.head()}", "{sales.head()} was sent as it is: prompts take no calls; put it into a variable first."),
    ],
)
def test_a_field_that_cannot_be_resolved_stays_and_warns(text: str, warning: str) -> None:
    rendered = render(text, hostile=Hostile(), prop=Property())
    assert (rendered.text, rendered.inserted) == (text, [])
    (said,) = rendered.warnings
    assert said.startswith(warning)


def test_an_object_that_cannot_show_itself_does_not_end_the_cell() -> None:
    rendered = render("<{hostile}>", hostile=Hostile())
    assert rendered.text.startswith("<") and rendered.text.endswith(">")


def test_an_interrupt_gets_out() -> None:
    with pytest.raises(KeyboardInterrupt):
        render("{prop.asked}", prop=Property())


def test_names_that_are_far_from_all_variables_are_not_warned_of() -> None:
    assert render("{color} {x} {} {missing[0:2]} {missing[n]} {rows[0] + 1} {rows[n").warnings == []


def test_many_warnings_are_counted() -> None:
    rendered = render("".join(f"{{rows[{n}]}}" for n in range(10, 30)))
    assert len(rendered.warnings) == 6
    assert rendered.warnings[-1] == "15 more fields were sent as they are."


def test_the_same_rule_holds_for_a_system_prompt_without_images() -> None:
    from matplotlib.figure import Figure

    text, said = render_system("Be {name}. {fig} {slaes}", NAMESPACE | {"fig": Figure()}, variable_content)
    assert text.startswith("Be Ada. ") and text.endswith("{slaes}")
    assert said.inserted == ["name: str, 3 characters (in --system)", "fig: Figure (in --system)"]
    assert said.warnings[-1] == "A system prompt is text: images were left out of --system."


@pytest.mark.parametrize("text", ["{" * 50_000, "{{" * 50_000, "`" * 50_000, "` " * 50_000, "{a" * 50_000])
def test_odd_texts_take_time_in_proportion(text: str) -> None:
    assert render(text).text == text


@pytest.mark.parametrize(
    "part",
    [
        "\\a[",
        "\\a{",
        "$x_{",
        "$$",
        "{x.y",
        '{x["',
        "${",
        "```\n",
        "\n  ",
        "- ",
        "> ",
        "{aa:",
        "{n}",
        "{n[",
        "{n[0]",
        "{n[a]",
    ],
)
def test_many_of_one_part_take_time_in_proportion(part: str) -> None:
    text = part * 20_000
    assert render(text).text == text.replace("{n}", "3")
