"""What all adapters share: JSON, levels, limits, prices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis._adapter import clamp_thinking, compact_json, encode, new_call_id, priced
from pi_notebook.ai.model import CostRates, Model, ThinkingLevel

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@given(VALUES)
def test_json_is_what_the_json_module_makes_of_it(value: Any) -> None:
    assert json.loads(compact_json(value)) == value
    assert json.loads(encode(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ({"a": 1, "b": 'x"\n', "é": "\u2028"}, '{"a":1,"b":"x\\"\\n","é":"\u2028"}'),
        ({"a": True, "b": None}, '{"a":true,"b":null}'),
        ({1: "x"}, '{"1":"x"}'),
        ({"a": "x\ud83dy"}, '{"a":"xy"}'),
        ([1.5, "x"], '[1.5,"x"]'),
    ],
)
def test_compact_json(value: Any, text: str) -> None:
    assert compact_json(value) == text


def test_lone_surrogates_are_left_out_everywhere() -> None:
    assert encode({"a\ud83d": ["\ude00x", {"y": "\ud83d\ude00"}]}) == '{"a":["x",{"y":"😀"}]}'.encode()


@pytest.mark.parametrize(
    ("levels", "asked", "got"),
    [
        ({}, "off", "off"),
        ({}, "max", "high"),
        ({"max": "most"}, "xhigh", "max"),
        ({"low": None, "medium": None, "high": None, "minimal": None}, "low", "off"),
        ({"off": None, "low": None}, "low", "medium"),
    ],
)
def test_the_nearest_level(levels: dict[str, str | None], asked: ThinkingLevel, got: ThinkingLevel) -> None:
    assert clamp_thinking(Model("m", "x", reasoning=True, thinking_levels=levels), asked) == got
    assert clamp_thinking(Model("m", "x", thinking_levels=levels), asked) == "off"


def test_the_cost_of_what_was_written_to_a_cache_for_an_hour() -> None:
    model = Model("m", "x", cost=CostRates(3, 15, 0.3, 3.75))
    usage = priced(model, input=1000, output=100, cache_read=10, cache_write=300, cache_write_1h=200)
    assert usage.cost is not None
    assert usage.cost.cache_write == pytest.approx((3.75 * 100 + 3 * 2 * 200) / 1e6)
    assert usage.cost.total == pytest.approx((3 * 1000 + 15 * 100 + 0.3 * 10 + 3.75 * 100 + 6 * 200) / 1e6)
    assert usage.total_tokens == 1410
    assert priced(Model("m", "x"), input=1).cost is None


def test_made_up_ids_differ() -> None:
    assert len({new_call_id() for _ in range(1000)}) == 1000
