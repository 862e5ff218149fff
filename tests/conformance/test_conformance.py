"""Every public case as a test of its own, and the report's form."""

from __future__ import annotations

import pytest

from .case import PARTS, PUBLIC_DATA, Case, difference, load_part, run_case

CASES = [
    pytest.param(name, case, id=f"{name}-{case.name}") for name in PARTS for case in load_part(name).cases(PUBLIC_DATA)
]


@pytest.mark.parametrize(("part", "case"), CASES)
def test_case_meets_the_reference_or_a_rule(part: str, case: Case) -> None:
    outcome = run_case(load_part(part), case)
    assert not outcome.problem, outcome.problem


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_cases(part: str) -> None:
    assert any(True for _ in load_part(part).cases(PUBLIC_DATA))


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"a": [1, 2.0]}, {"a": [1.0, 2]}, None),
        ({"a": 1}, {"a": True}, "a: expected 1, got true"),
        ({"a": {"b": None}}, {"a": {}}, "a: key 'b' is missing, expected null"),
        ([1], [1, "x"], 'top: 1 items expected, got 2; [1] unexpected: "x"'),
        (2**53, 2**53 + 1, None),
    ],
)
def test_difference_names_the_first_place(expected: object, actual: object, found: str | None) -> None:
    assert difference(expected, actual) == found
