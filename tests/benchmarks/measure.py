"""Runs the clients side by side and keeps every figure."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
YARDSTICK = "bare_httpx"
CLIENTS = {  # name -> what has to be installed
    "raw_socket": (),
    YARDSTICK: ("httpx",),
    "pi_notebook": ("httpx",),
    "openai_sdk": ("openai",),
    "pydantic_ai": ("pydantic_ai", "openai"),
}
SERVED = ("turns-200", "stream-20000", "bigargs-1000000", "fan-500", "history-5000")
WORKLOADS = (*SERVED, "cold", "import")
Record = dict[str, Any]
"""`workload`, `client`, `wall`, `cpu` (seconds), `turns`, `peak_mb`, `error`."""


def installed() -> list[str]:
    """The clients that can run here."""
    return [name for name, needs in CLIENTS.items() if all(importlib.util.find_spec(need) for need in needs)]


@contextmanager
def model_server() -> Iterator[str]:
    """A server for the time being; yields its base URL."""
    command = [sys.executable, "-m", f"{__package__}.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()


class Worker:
    """A process that runs one client."""

    def __init__(self, client: str, base_url: str) -> None:
        self.client = client
        command = [sys.executable, "-m", f"{__package__}.worker", client, base_url]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
        )

    def run(self, workload: str, timeout: float) -> Record:
        """One run. Past `timeout` seconds, or if the process ends, the record holds an error."""
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{workload}\n".encode())
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], timeout)
            line = process.stdout.readline() if ready else b'{"error": "over %g s"}' % timeout
            record = json.loads(line) if line else {"error": "its process ended"}
        except BrokenPipeError:
            record = {"error": "its process ended"}
        return {"workload": workload, "client": self.client, **record}

    def stop(self) -> float:
        """End the process; returns the seconds of CPU that it took in all."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(workloads: Iterable[str], clients: Iterable[str], rounds: int, timeout: float) -> Iterator[Record]:
    """Every run of every client, in shuffled order, one at a time."""
    order = random.Random(1)
    clients = list(clients)
    with model_server() as base_url:
        for workload in workloads:
            if workload == "cold":
                yield from _cold(base_url, clients, rounds, timeout, order)
            elif workload == "import":
                yield from _imports(clients, rounds, order)
            else:
                yield from _served(workload, base_url, clients, rounds, timeout, order)


def _served(
    workload: str, base_url: str, clients: list[str], rounds: int, timeout: float, order: random.Random
) -> Iterator[Record]:
    workers = [Worker(client, base_url) for client in clients]
    try:
        for worker in list(workers):  # lazy imports; and the server renders
            for first in ("turns-2", workload if worker is workers[0] else "turns-2"):
                record = worker.run(first, timeout)
                if record["error"]:
                    yield {**record, "workload": workload}
                    break
        for _ in range(rounds):
            order.shuffle(workers)
            for worker in list(workers):
                record = worker.run(workload, timeout)
                yield record
                if record["error"]:
                    workers.remove(worker)
                    worker.process.kill()
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


def _cold(base_url: str, clients: list[str], rounds: int, timeout: float, order: random.Random) -> Iterator[Record]:
    """From the start of a process to the end of a first turn; the first round fills the caches of the disk."""
    for number in range(rounds + 1):
        order.shuffle(clients)
        for client in clients:
            began = time.perf_counter()
            worker = Worker(client, base_url)
            record = worker.run("turns-1", timeout)
            wall = time.perf_counter() - began
            cpu = worker.stop()
            if number:
                yield {**record, "workload": "cold", "wall": wall, "cpu": cpu, "turns": 1}


def _imports(clients: list[str], rounds: int, order: random.Random) -> Iterator[Record]:
    """A process that imports what the client needs, and nothing else."""
    for number in range(rounds + 1):
        order.shuffle(clients)
        for client in clients:
            code = f"import {__package__}.clients.{client}"
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.perf_counter()
            ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ, capture_output=True)
            wall = time.perf_counter() - began
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            error = ended.stderr.decode()[-200:] if ended.returncode else None
            if number:
                yield {"workload": "import", "client": client, "wall": wall, "cpu": cpu, "turns": 1, "error": error}
