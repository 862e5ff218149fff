"""Run recorded cases and report them: `python -m tests.conformance [--data DIR] [PART...]`; 1 if any fails."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .case import PARTS, PUBLIC_DATA, load_part, run_case


def report(name: str, data: Path) -> bool:
    """Run one part on a folder, print its line and its cases; True if none failed."""
    part = load_part(name)
    outcomes = [(case.name, run_case(part, case)) for case in part.cases(data)]
    failed = [(case, outcome.problem) for case, outcome in outcomes if outcome.problem]
    by_rule = [(case, outcome.rule) for case, outcome in outcomes if outcome.rule]
    print(f"{name}: {len(outcomes) - len(failed)} / {len(outcomes)} ({len(by_rule)} by rule)")
    for case, problem in failed:
        print(f"  FAILED {case}: {problem}")
    for case, rule in by_rule:
        print(f"  RULE {rule} {case}")
    sys.stdout.flush()
    return not failed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--data", type=Path, default=PUBLIC_DATA, help="folder of cases (default: the public ones)")
    # No `choices`: with nargs="*" argparse would hold the empty default against them.
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    options = parser.parse_args(argv)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if not options.data.is_dir():
        parser.error(f"--data {options.data}: no such folder")
    # A strange character in a case must not break the report on a terminal that is not UTF-8.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    results = [report(name, options.data) for name in options.parts or PARTS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
