"""What a card costs a kernel, and what it sends to the browser. A real kernel; its client only counts."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.manager import start_new_kernel

from .measure import model_server

CEILING = 120.0
_SETUP = """
import asyncio, json, time
import ipywidgets
began = time.perf_counter()
get_ipython().run_line_magic("load_ext", "pi_notebook")
loaded = time.perf_counter() - began
from pi_notebook import Agent, Model
from pi_notebook.ai.model import StreamOptions
def model(name):
    return Model(name, "openai-completions", "openai-compatible", {base_url!r})
"""
_WITHOUT_CARD = """
agent = Agent(model=model({workload!r}), options=StreamOptions(api_key="none"))
began, cpu = time.perf_counter(), time.process_time()
result = await agent.prompt("Go.")
bare = [time.perf_counter() - began, time.process_time() - cpu, len(result.text), result.error_message]
"""
_WITH_CARD = """
served = model({workload!r})
began, cpu = time.perf_counter(), time.process_time()
get_ipython().run_cell_magic("agent", "--new -m served -o result", "Go.")
card = [time.perf_counter() - began, time.process_time() - cpu, len(result.text), result.error_message]
"""
Ask = Callable[[str, str], tuple[Any, int]]


def _say_drawn(client: Any, comm_id: str) -> None:
    """What a page says when it has drawn a widget."""
    data = {"method": "update", "state": {"_view_count": 1}, "buffer_paths": []}
    client.shell_channel.send(client.session.msg("comm_msg", {"comm_id": comm_id, "data": data}))


@contextmanager
def kernel() -> Iterator[Ask]:
    """Yields `ask(code, expression)`: runs a cell and returns the value of `expression` (JSON) and the bytes sent."""
    manager, client = start_new_kernel(kernel_name="python3", stderr=subprocess.DEVNULL)

    def ask(code: str, expression: str) -> tuple[Any, int]:
        request = client.execute(code, user_expressions={"value": f"json.dumps({expression})"}, store_history=False)
        sent = 0
        while True:
            message = client.get_iopub_msg(timeout=CEILING)
            if message["parent_header"].get("msg_id") != request and not message["msg_type"].startswith("comm"):
                continue
            content = message["content"]
            if view := content.get("data", {}).get("application/vnd.jupyter.widget-view+json"):
                _say_drawn(client, view["model_id"])
            if message["msg_type"] == "error":
                raise RuntimeError("\n".join(content["traceback"]))
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            if message["msg_type"] not in ("status", "execute_input"):
                sent += len(json.dumps(content, ensure_ascii=False).encode()) + sum(map(len, message["buffers"]))
        while True:
            reply = client.get_shell_msg(timeout=CEILING)
            if reply["parent_header"].get("msg_id") == request:
                shown = reply["content"]["user_expressions"]["value"]["data"]["text/plain"]
                return json.loads(shown[1:-1].replace("\\\\", "\\")), sent

    try:
        yield ask
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def figures(rounds: int = 5, paced: int = 5000, burst: int = 20_000) -> dict[str, float]:
    """`load_ext_ms` (median), `card_cpu_share` of a core at 1,000 deltas/s, `bytes_ratio` of a long answer."""
    loads = []
    with model_server() as base_url:
        for _ in range(rounds):
            with kernel() as ask:
                loads.append(ask(_SETUP.format(base_url=base_url), "loaded")[0])
        with kernel() as ask:
            ask(_SETUP.format(base_url=base_url), "loaded")
            for warm in (_WITHOUT_CARD, _WITH_CARD):
                ask(warm.format(workload="paced-50"), "0")
            bare = ask(_WITHOUT_CARD.format(workload=f"paced-{paced}"), "bare")[0]
            card = ask(_WITH_CARD.format(workload=f"paced-{paced}"), "card")[0]
            long, sent = ask(_WITH_CARD.format(workload=f"stream-{burst}"), "card")
    for _, _, length, error in (bare, card, long):
        if error or not length:
            raise RuntimeError(f"the run in the kernel failed: {error}")
    return {
        "load_ext_ms": statistics.median(loads) * 1000,
        "card_cpu_share": (card[1] - bare[1]) / card[0],
        "run_cpu_share": card[1] / card[0],
        "bytes_ratio": sent / long[2],
    }


def lines(found: dict[str, float]) -> Iterator[str]:
    yield "| in the notebook | measured | limit |"
    yield "|---|--:|--:|"
    yield f"| `%load_ext`, ipywidgets loaded | {found['load_ext_ms']:.0f} ms | 150 ms |"
    yield f"| kernel CPU of the card at 1,000 deltas/s | {found['card_cpu_share']:.1%} of a core | 5% |"
    yield f"| the same with request and agent | {found['run_cpu_share']:.1%} of a core | |"
    yield f"| sent to the browser for a 20,000-delta answer | {found['bytes_ratio']:.2f} x its size | 4 x |"
