"""The table: medians, and ratios to the bare httpx loop of the same run."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from .measure import CLIENTS, YARDSTICK, Record

LIMITS = {  # what we hold ourselves to, as a ratio to the yardstick
    "turns-200": 1.1,
    "stream-20000": 1.1,
    "bigargs-1000000": 1.1,
    "fan-500": 1.3,
    "history-5000": 1.0,
    "cold": 1.9,
    "import": 1.6,
}
PEAK_MB = 42


def median(records: Sequence[Record], key: str) -> float | None:
    values = [record[key] for record in records if not record.get("error") and record.get(key) is not None]
    return statistics.median(values) if values else None


def machine() -> str:
    """Processor, cores, load, Python and date, in one line."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        name = next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores{load}, Python {platform.python_version()}, {date.today().isoformat()}"


def table(records: Sequence[Record]) -> Iterator[str]:
    """Markdown lines: per workload and client wall and CPU in ms (per turn), their ratios, and the peak of memory."""
    yield "| workload | client | n | ms | x httpx | CPU ms | CPU x httpx | peak MB | limit |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for workload in dict.fromkeys(record["workload"] for record in records):
        mine = [record for record in records if record["workload"] == workload]
        by_client = {name: [r for r in mine if r["client"] == name] for name in CLIENTS}
        base = by_client[YARDSTICK]
        for name, rows in by_client.items():
            if rows:
                yield _row(workload, name, rows, base)


def _row(workload: str, name: str, rows: Sequence[Record], base: Sequence[Record]) -> str:
    good = [row for row in rows if not row.get("error")]
    if not good:
        return f"| {workload} | {name} | 0 | {rows[-1]['error']} | | | | | |"
    cells = [workload, name, str(len(good))]
    for key in ("wall", "cpu"):
        value, reference = median(good, key), median(base, key)
        cells.append("" if value is None else f"{value * 1000 / good[0]['turns']:.2f}")
        cells.append(f"{value / reference:.2f}" if value and reference else "")
    peak = median(good, "peak_mb")
    cells.append(f"{peak:.0f}" if peak else "")
    limit = LIMITS.get(workload) if name == "pi_notebook" else None
    cells.append(f"{limit:.1f}" + (f", {PEAK_MB} MB" if workload == "turns-200" else "") if limit else "")
    return f"| {' | '.join(cells)} |"
