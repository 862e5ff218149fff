"""python -m tests.benchmarks [--only turns-200,cold] [--clients pi_notebook,bare_httpx] [--rounds 5]

Prints one table and writes `build/benchmarks.json`. Figures are compared within one run only.
"""

from __future__ import annotations

import argparse
import json
import sys

from .measure import ROOT, WORKLOADS, YARDSTICK, installed, measure
from .report import machine, table

REAL = ("notebook", "click")
"""Measured in a real kernel and a real browser."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--only", help=f"workloads, comma between: {', '.join(WORKLOADS)}, any turns-N, ..., notebook, click"
    )
    parser.add_argument("--clients", help=f"of those that can run here: {', '.join(installed())}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that one run may take")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [*WORKLOADS, *REAL]
    clients = options.clients.split(",") if options.clients else installed()
    if unknown := set(clients) - set(installed()):
        parser.error(f"not installed or unknown: {', '.join(sorted(unknown))}")
    if YARDSTICK not in clients:
        clients.append(YARDSTICK)
    where = machine()
    records = []
    for record in measure(
        [name for name in wanted if name not in ("notebook", "click")], clients, options.rounds, options.timeout
    ):
        records.append(record)
        if sys.stderr.isatty():
            print(f"\r{record['workload']:<16} {record['client']:<12}\r", end="", file=sys.stderr, flush=True)
    print(where, *(("", *table(records)) if records else ()), sep="\n")
    found = clicked = None
    if "notebook" in wanted:
        from . import notebook

        found = notebook.figures(options.rounds)
        print("", *notebook.lines(found), sep="\n")
    if "click" in wanted:
        from . import click

        if click.is_possible():
            clicked = click.figures()
            print("", *click.lines(clicked), sep="\n")
    target = ROOT / "build" / "benchmarks.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"machine": where, "records": records, "notebook": found, "click": clicked}, indent=1))
    print(f"\nAll figures: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
