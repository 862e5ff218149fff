import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pi_notebook.ai import discovery, keys
from pi_notebook.ai.discovery import default_model, usable_models
from pi_notebook.ai.providers import PRACTICE, PROVIDERS


@pytest.fixture(autouse=True)
def _no_keys_no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for name in (*provider.key_names, *provider.base_url_names):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(keys, "_set_by_hand", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    keys._from_keyring.cache_clear()
    monkeypatch.setenv("PI_NOTEBOOK_NO_LOCAL", "1")


@contextmanager
def serving(answer: Callable[[str, Any], Any]) -> Iterator[tuple[str, list[str]]]:
    """A server on a free port that answers `path, body` with JSON; None is a 404."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            asked.append(self.path)
            said = answer(self.path, body)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(404 if said is None else 200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def ollama(*models: tuple[str, list[str]]) -> Callable[[str, Any], Any]:
    def answer(path: str, body: Any) -> Any:
        if path == "/api/version":
            return {"version": "0.12.0"}
        if path == "/api/tags":
            return {"models": [{"name": name} for name, _ in models]}
        if path == "/api/show":
            return {"capabilities": dict(models)[body["model"]]}
        return None

    return answer


def test_without_key_and_server_practice_answers() -> None:
    assert default_model() is PRACTICE


def test_the_first_provider_with_a_key_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    assert default_model().label == "groq:openai/gpt-oss-120b"
    keys.set_key("openai", "k")
    assert default_model().label == "openai:gpt-5-mini"


def test_an_ollama_is_used_with_its_first_model_that_can_call_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ollama(("tiny:1b", ["completion"]), ("qwen3:8b", ["completion", "tools"]))) as (address, _):
        monkeypatch.setenv("OLLAMA_HOST", address)
        assert default_model().label == "ollama:qwen3:8b"
        listed = {usable.name: usable for usable in usable_models()}
    assert list(listed) == ["ollama:tiny:1b", "ollama:qwen3:8b", "practice"]
    assert listed["ollama:qwen3:8b"].default and not listed["practice"].default
    assert listed["ollama:qwen3:8b"].reason == f"{address}/v1"


@pytest.mark.parametrize(
    "answer", [lambda p, b: None, lambda p, b: b"<html>", lambda p, b: [1], lambda p, b: {"version": 3}]
)
def test_a_server_that_does_not_answer_as_ollama_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, Any], Any]
) -> None:
    with serving(answer) as (address, asked):
        monkeypatch.setenv("OLLAMA_HOST", address)
        assert default_model() is PRACTICE
    assert asked == ["/api/version"]


def test_an_ollama_without_a_model_for_tools_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ollama(("tiny:1b", ["completion"]))) as (address, _):
        monkeypatch.setenv("OLLAMA_HOST", address)
        assert default_model() is PRACTICE


def test_a_server_that_is_not_there_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda p, b: None) as (address, _):
        pass
    monkeypatch.setenv("OLLAMA_HOST", address)
    assert default_model() is PRACTICE


def test_no_server_of_this_machine_is_asked_when_that_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(discovery, "_get", lambda client, url, body=None: asked.append(url))
    default_model(), usable_models()
    assert asked == []
    monkeypatch.setenv("PI_NOTEBOOK_NO_LOCAL", "0")
    usable_models()
    assert "http://127.0.0.1:11434/api/version" in asked and "http://127.0.0.1:8000/v1/models" in asked


def test_models_of_keys_and_of_compatible_servers_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda path, body: {"data": [{"id": "qwen"}, {"no": 1}]} if path == "/v1/models" else None) as (at, _):
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{at}/v1")
        monkeypatch.setenv("DEEPSEEK_API_KEY", "secret-key")
        rows = usable_models()
    assert [(row.name, row.reason, row.default) for row in rows] == [
        ("deepseek:deepseek-v4-flash", "DEEPSEEK_API_KEY", True),
        ("deepseek:deepseek-v4-pro", "DEEPSEEK_API_KEY", False),
        ("openai-compatible:qwen", f"{at}/v1", False),
        ("practice", "built in; no language model", False),
    ]
    assert "secret-key" not in repr(rows)


def test_a_proxy_is_used_for_other_machines_and_never_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    models = {"data": [{"id": "corp-7b"}]}
    with serving(lambda path, _: models if path.endswith("/v1/models") else None) as (address, asked):
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://models.test/v1")
        assert "openai-compatible:corp-7b" in [usable.name for usable in usable_models()]
        assert asked == ["http://models.test/v1/models"]
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{address}/v1")
        assert "openai-compatible:corp-7b" in [usable.name for usable in usable_models()]


@pytest.mark.parametrize("value", ["host:notaport", "[::1", "::1"])
def test_an_address_that_is_none_breaks_nothing(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert default_model() is PRACTICE
    assert [usable.name for usable in usable_models()] == ["practice"]


ODD_ANSWERS = [
    {"data": [{"id": ""}, {"id": "  "}, {"id": "a\nb"}, {"id": 5}, {"id": ["x"]}, 7, {"id": "good"}]},
    {"data": {"id": "x"}},
    {"data": 5},
    b"[" * 200_000,
    b'{"data": [{"id": "\xff"}]}',
    b"",
]


@pytest.mark.parametrize("answer", ODD_ANSWERS, ids=range(len(ODD_ANSWERS)))
def test_an_odd_answer_of_a_server_is_no_error(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    with serving(lambda path, body: answer) as (address, _):
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("OLLAMA_HOST", address)
        names = [usable.name for usable in usable_models()]
    assert names == ["openai-compatible:good"] * (answer is ODD_ANSWERS[0]) + ["practice"]


@pytest.mark.parametrize("shown", [None, [], {}, {"capabilities": 5}, {"capabilities": "tools"}, b"[" * 200_000])
def test_an_odd_answer_of_ollama_about_a_model_passes_it_over(monkeypatch: pytest.MonkeyPatch, shown: Any) -> None:
    good = ollama(("odd", []), ("good", ["tools"]))

    def answer(path: str, body: Any) -> Any:
        return shown if body == {"model": "odd"} else good(path, body)

    with serving(answer) as (address, _):
        monkeypatch.setenv("OLLAMA_HOST", address)
        assert default_model().label == "ollama:good"


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 X\r\n", b"HTTP/1.1 200 X\r\n\r\n", b"HTTP/1.1 200 X\r\ncontent-length: 999999999\r\n\r\n"]
)
@pytest.mark.parametrize("piece", [b" ", b"x: y\r\n" * 5_000])
def test_a_server_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch, start: bytes, piece: bytes) -> None:
    monkeypatch.setattr(discovery, "ASK_SECONDS", 0.3)
    monkeypatch.setattr(discovery, "MAX_ANSWER", 1_000_000)
    hung_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection = listening.accept()[0]
            with connection, contextlib.suppress(OSError):
                connection.sendall(start)
                while not hung_up.wait(0.01):
                    connection.sendall(piece)
            hung_up.set()

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{listening.getsockname()[1]}")
        asked: list[Any] = []
        asking = threading.Thread(target=lambda: asked.append(default_model()), daemon=True)
        asking.start()
        asking.join(20)
        assert asked == [PRACTICE]
        assert hung_up.wait(20), "the connection stays open"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_COMPATIBLE_API_KEY", "schl\u00fcssel"),
        ("OPENAI_COMPATIBLE_API_KEY", "a\nb"),
        ("ALL_PROXY", "what://is:this"),
    ],
)
def test_what_no_request_can_be_made_with_is_no_error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://models.test/v1")
    monkeypatch.setenv(name, value)
    assert [usable.name for usable in usable_models()] == ["practice"]
