"""Every client that can run here does all the work of each workload, at tiny sizes. No times are looked at."""

from __future__ import annotations

import pytest

from .measure import installed, measure
from .report import table
from .workloads import Run

TINY = ("turns-2", "stream-20", "bigargs-200", "fan-3", "history-9", "import", "cold")


def test_every_client_does_all_the_work() -> None:
    clients = [name for name in installed() if name in ("raw_socket", "bare_httpx", "pi_notebook")]
    records = list(measure(TINY, clients, rounds=1, timeout=60))
    assert [record for record in records if record["error"]] == []
    assert {(record["workload"], record["client"]) for record in records} == {(w, c) for w in TINY for c in clients}
    assert len(list(table(records))) == 2 + len(TINY) * len(clients)


def test_less_work_than_asked_for_is_no_time() -> None:
    run = Run("stream-3")
    run.delta("one")
    assert run.complaint() == "0 calls and 1 deltas instead of 0 and 3"
    with pytest.raises(ValueError, match="Unknown workload 'nonsense'"):
        Run("nonsense")
