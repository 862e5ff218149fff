"""What every part of the runner speaks: a case, its outcome, and the first difference of two JSON values."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

PUBLIC_DATA = Path(__file__).parent / "data"
PARTS: tuple[str, ...] = (
    "loop",
    "validation",
    "json",
    "requests",
    "streams",
)  # in the order of the report; a part module adds its name here


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded case. `name` is unique within the part; `data` is whatever the part needs to run it."""

    name: str
    data: Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case went: passed (no `rule`, no `problem`), sorted under a rule, or failed with a problem."""

    rule: str = ""
    problem: str = ""

    @classmethod
    def passed(cls) -> Outcome:
        return cls()

    @classmethod
    def by_rule(cls, name: str) -> Outcome:
        """Differs from the reference on purpose; `name` is the rule's name in the design, such as `A1`."""
        return cls(rule=name)

    @classmethod
    def failed(cls, problem: str) -> Outcome:
        """`problem` is the first difference, one line."""
        return cls(problem=problem or "failed without a reason")


class Part(Protocol):
    def cases(self, data: Path) -> Iterable[Case]: ...

    def run(self, case: Case) -> Outcome: ...


def load_part(name: str) -> Part:
    """The module `part_NAME`, which has the two functions of `Part`."""
    return importlib.import_module(f"{__package__}.part_{name}")  # type: ignore[return-value]


def run_case(part: Part, case: Case) -> Outcome:
    """Run one case; an exception of ours is a failure, never the end of the run."""
    try:
        return part.run(case)
    except Exception as error:
        return Outcome.failed(f"raised {type(error).__name__}: {error}")


def difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """The first difference of two JSON values as one line, or None if they are equal as JavaScript sees them.

    Numbers are compared as doubles (5 equals 5.0, digits beyond 2^53 are lost); booleans are no numbers; the
    order of keys has no meaning.
    """
    here = path or "top"
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            if key not in actual:
                return f"{here}: key {key!r} is missing, expected {_short(expected[key])}"
            if key not in expected:
                return f"{here}: unexpected key {key!r} with {_short(actual[key])}"
        pairs = [(f"{path}.{key}" if path else str(key), expected[key], actual[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(actual, list):
        pairs = [(f"{path}[{i}]", *pair) for i, pair in enumerate(zip(expected, actual, strict=False))]
    else:
        return None if _same_scalar(expected, actual) else f"{here}: expected {_short(expected)}, got {_short(actual)}"
    for child_path, child_expected, child_actual in pairs:
        if found := difference(child_expected, child_actual, child_path):
            return found
    if len(expected) != len(actual):
        longer, word = (expected, "missing") if len(expected) > len(actual) else (actual, "unexpected")
        at = min(len(expected), len(actual))
        return f"{here}: {len(expected)} items expected, got {len(actual)}; [{at}] {word}: {_short(longer[at])}"
    return None


def _same_scalar(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return float(expected) == float(actual)
    return type(expected) is type(actual) and bool(expected == actual)


def _short(value: Any, limit: int = 300) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
