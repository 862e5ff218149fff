"""A key that is named for one cell is in nothing that leaves the cell: no request, no output, no file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from pi_notebook.agent.registry import registry
from pi_notebook.ai import keys
from pi_notebook.notebook.extension import load, unload
from pi_notebook.notebook.transcript import static_bundle

KEY = "sk-proj-hunter2_0123456789+/abc_def=="
CALL = {"name": "bash", "arguments": json.dumps({"command": "echo $MY_SPECIAL; env; printenv MY_SPECIAL"})}
DELTAS: list[dict[str, Any]] = [
    {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": CALL}]},
    {"content": f"It is {KEY}."},
]


class Server:
    """A model that calls bash, then says what it should not know. `asked`: authorization and body of each request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                server.asked.append((self.headers["authorization"], body))
                delta = DELTAS[min(len(server.asked), len(DELTAS)) - 1]
                reason = "tool_calls" if "tool_calls" in delta else "stop"
                said = json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(f"data: {said}\n\ndata: [DONE]\n\n".encode())

            def log_message(self, *arguments: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setattr(keys, "_seen", set())
    monkeypatch.setattr(keys, "_asked", set())
    monkeypatch.setenv("MY_SPECIAL", KEY)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "nb.ipynb"))
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}), ipython_dir=str(tmp_path / "ipy"))
    load(shell)
    yield shell
    unload(shell)
    registry.clear()


def test_a_key_named_for_one_cell_leaves_it_nowhere(
    shell: InteractiveShell, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"-m openai-compatible:m --base-url {server.base_url} --api-key-env MY_SPECIAL --tools bash --approve all"
    shell.run_cell_magic("agent", line, f"My key is {KEY}; what does bash see?")
    assert [authorization for authorization, _ in server.asked] == [f"Bearer {KEY}"] * 2
    (result,) = [m for m in json.loads(server.asked[1][1])["messages"] if m["role"] == "tool"]
    assert "PATH=" in result["content"] and "MY_SPECIAL" not in result["content"] and KEY not in result["content"]
    bundle = json.dumps(static_bundle(shell.magics_manager.registry["AgentMagics"].last_run.view))
    assert "It is ***" in bundle and "hunter2" not in bundle
    shell.run_line_magic("agent", "export out.md")
    shell.run_line_magic("agent", "export out.ipynb")
    kept = [tmp_path / ".pi_notebook" / "nb.ipynb.jsonl", tmp_path / "out.md", tmp_path / "out.ipynb"]
    for path in kept:
        text = path.read_text()
        assert "My key is ***; what does bash see?" in text and "It is ***" in text and "hunter2" not in text, path
