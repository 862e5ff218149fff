"""Part `json`: arguments still arriving. Complete texts must give the golden, incomplete ones may differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pi_notebook.ai.json_arguments import partial_arguments

from .case import Case, Outcome, difference

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def cases(data: Path) -> Iterable[Case]:
    for file in sorted((data / "json").glob("*.json")):
        for number, case in enumerate(json.loads(file.read_text("utf-8"))):
            yield Case(f"{file.stem}-{number}", case)


def run(case: Case) -> Outcome:
    text = case.data["input"]
    found = difference(case.data["value"], partial_arguments(text))
    if found is None or not is_complete(text):
        return Outcome.passed()
    if holds_lone_surrogate(json.loads(text)):
        return Outcome.by_rule("W8")
    return Outcome.failed(f"{text!r}: {found}")


def is_complete(text: str) -> bool:
    """Whether the text is JSON as it stands (NaN and infinities are not)."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def holds_lone_surrogate(value: Any) -> bool:
    return LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None
