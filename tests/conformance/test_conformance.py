"""Every public case as a test of its own, and the report's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .__main__ import main
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


def test_report_has_a_line_per_part_and_per_case_that_failed_or_has_a_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "number"}}, "required": ["v"]}
    cases = [
        {"id": "x-0", "schema": schema, "args": {"v": "5"}, "golden_0_84": {"ok": True, "value": {"v": 5}}},
        {"id": "x-1", "schema": schema, "args": {"v": None}, "golden_0_84": {"ok": True, "value": {"v": 0}}},
        {"id": "x-2", "schema": schema, "args": {"v": 6}, "golden_0_84": {"ok": True, "value": {"v": 7}}},
    ]
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation" / "x.json").write_text(json.dumps(cases), "utf-8")
    assert main(["--data", str(tmp_path), "validation", "json"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "validation: 2 / 3 (1 by rule)",
        "  FAILED x-2: value.v: expected 7, got 6",
        "  RULE A1 x-1",
        "json: 0 / 0 (0 by rule)",
    ]
    assert main(["--data", str(tmp_path), "json"]) == 0


def test_unknown_part_and_missing_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["nothing"], ["--data", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "no part is called nothing" in capsys.readouterr().err
