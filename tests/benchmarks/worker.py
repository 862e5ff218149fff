"""One client in a process of its own.

    python -m tests.benchmarks.worker CLIENT BASE_URL

Reads the name of a workload per line, runs it, and answers with one JSON line. Times are taken around the run alone;
preparing the history is outside of it. A run that did less than it should is an error, not a time.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def memory_mb(field: str) -> float | None:
    """`VmHWM` (peak) or `VmRSS` of this process; None where there is no /proc."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


async def serve(client: str, base_url: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a client prints must not get between the answers
    prepare = importlib.import_module(f"{__package__}.clients.{client}").make(base_url)
    from .workloads import Run

    for line in sys.stdin:
        run = Run(line.strip())
        go = prepare(run)
        gc.collect()
        forget_peak()
        error = None
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            await go()
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer: dict[str, Any] = {"wall": wall, "cpu": cpu, "turns": run.turns, "peak_mb": memory_mb("VmHWM")}
        answer["error"] = error or run.complaint()
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
