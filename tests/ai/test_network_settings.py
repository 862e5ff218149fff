"""Proxies, an authority of one's own and more headers: from the usual environment variables and from the model."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from pi_notebook.ai.messages import AssistantMessage, UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, stream

from .servers import head, replies, serving, sse

pytestmark = pytest.mark.anyio
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
CHUNK = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
OK = head() + sse(CHUNK)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def ask(base_url: str, **more: object) -> AssistantMessage:
    model = replace(Model("m", "openai-completions", "local", base_url), **more)  # type: ignore[arg-type]
    options = StreamOptions(max_retries=0, headers={"X-Team": "blue"})
    events = [event async for event in stream(model, Context(messages=[UserMessage("hi")]), options)]
    message: AssistantMessage = events[-1].message  # type: ignore[union-attr]
    return message


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_is_used(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(replies(OK)) as proxy:
        monkeypatch.setenv(variable, proxy.base_url.removesuffix("/v1"))
        message = await ask("http://model.test/v1")
        assert (message.text, message.error_message) == ("hi", None)
        assert proxy.heads[0].startswith("POST http://model.test/v1/chat/completions HTTP/1.1")


async def test_a_proxy_for_https_gets_no_key_and_no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(replies(OK)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.base_url.removesuffix("/v1"))
        message = await ask("https://model.test/v1", headers={"authorization": "Bearer secret-key-012345"})
        assert message.stop_reason == "error"
        assert all(text.startswith("CONNECT model.test:443") and "secret" not in text for text in proxy.heads)


async def test_a_host_that_needs_no_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(replies(OK)) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert (await ask(server.base_url)).text == "hi"


async def test_an_authority_of_ones_own_is_trusted_when_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    async with serving(replies(OK), tls) as server:
        refused = await ask(server.base_url)
        assert (refused.error_message or "").endswith(
            "Its certificate is not trusted here: name your authority's file in SSL_CERT_FILE."
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert (await ask(server.base_url)).text == "hi"


async def test_headers_of_the_model_and_of_the_request_are_sent() -> None:
    async with serving(replies(OK)) as server:
        await ask(server.base_url, headers={"X-Org": "red", "User-Agent": "mine"})
        sent = server.heads[0].lower()
        for line in ("x-org: red", "x-team: blue", "user-agent: mine"):
            assert sent.count(line) == 1
