"""The way to the network: retries, time-outs, abort, error texts, keep-alive, against real servers."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import sys
import threading
import time
from typing import Any

import httpx
import pytest

from pi_notebook.ai._sse import SseEvent
from pi_notebook.ai.abort import AbortController, Aborted
from pi_notebook.ai.connection import Connection
from pi_notebook.ai.model import Model, StreamOptions
from pi_notebook.ai.transport import WireRequest, post_events
from pi_notebook.errors import ProviderError

from .servers import Handler, Write, head, replies, serving

pytestmark = pytest.mark.anyio

KEY = "sk-proj-AbCdEfGhIjKlMnOp"
OK = head() + b"data: 1\n\ndata: 2\n\n"


def model_at(base_url: str) -> Model:
    return Model("m1", "openai-completions", "local", base_url)


def request_to(base_url: str) -> WireRequest:
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    return WireRequest(f"{base_url}/chat/completions", headers, b"{}", KEY, "LOCAL_API_KEY")


async def collect(base_url: str, options: StreamOptions | None = None) -> list[SseEvent]:
    model = model_at(base_url)
    batches = [batch async for batch in post_events(model, options or quick(), request_to(base_url))]
    assert batches[0] == []
    return [event for batch in batches for event in batch]


def quick(**more: Any) -> StreamOptions:
    return StreamOptions(api_key=KEY, **more)


def refusal(status: int, *headers: str, body: str = '{"error":{"message":"no"}}') -> bytes:
    return head(status, "application/json", *headers) + body.encode()


async def test_server_sent_events_come_in_batches() -> None:
    async with serving(replies(OK)) as server:
        assert await collect(server.base_url) == [("", b"1"), ("", b"2")]
        assert "accept-encoding: identity" in server.heads[0].lower()


async def test_one_json_document_is_one_event_whatever_it_is_called() -> None:
    for content_type in ("application/json", "text/event-stream"):
        body = head(200, content_type) + b' {\n "error": {\n\n "message": "x"}}'
        async with serving(replies(body)) as server:
            assert await collect(server.base_url) == [("", b'{\n "error": {\n\n "message": "x"}}')]


async def test_events_called_json_are_events() -> None:
    async with serving(replies(head(200, "application/json") + b"data: 1\n\n")) as server:
        assert await collect(server.base_url) == [("", b"1")]


async def test_a_compressed_reply_is_read() -> None:
    body = head(200, "text/event-stream", "content-encoding: gzip") + gzip.compress(b"data: 1\n\n")
    async with serving(replies(body)) as server:
        assert await collect(server.base_url) == [("", b"1")]


async def test_a_web_page_is_no_reply() -> None:
    async with serving(replies(head(200, "text/html; charset=utf-8") + b"<html>hello</html>")) as server:
        with pytest.raises(ProviderError, match=r"answered with a web page.*Check the base URL"):
            await collect(server.base_url)


# -- a network that fails --------------------------------------------------------------------------------------------


async def test_an_unreachable_server_is_named() -> None:
    with pytest.raises(ProviderError, match=r"Cannot reach http://127.0.0.1:9/v1: .* Is the server running"):
        await collect("http://127.0.0.1:9/v1", quick(max_retries=0))


async def test_a_connection_that_fails_is_tried_again() -> None:
    told: list[str] = []
    options = quick(max_retries=1, on_retry=lambda attempt, delay, reason: told.append(reason))
    with pytest.raises(ProviderError):
        await collect("http://127.0.0.1:9/v1", options)
    assert len(told) == 1
    assert "Cannot reach" in told[0]


async def test_no_retry_after_something_of_the_reply_came() -> None:
    cut = head(200, "text/event-stream", "transfer-encoding: chunked") + b"9\r\ndata: 1\n\n\r\n"
    async with serving(replies(cut)) as server:
        got: list[SseEvent] = []
        with pytest.raises(ProviderError, match="broke off in the middle of the reply"):
            async for batch in post_events(model_at(server.base_url), quick(), request_to(server.base_url)):
                got += batch
        assert got == [("", b"1")]
        assert len(server.heads) == 1


async def test_a_silent_server_is_given_up() -> None:
    async def silent(write: Write) -> None:
        await write(head() + b"data: 1\n\n")
        await asyncio.Event().wait()

    async with serving([silent]) as server:
        with pytest.raises(ProviderError, match=r"local:m1 sent nothing for 0.05 s"):
            await collect(server.base_url, quick(timeout=0.05))


async def test_a_server_that_takes_the_request_and_never_answers_is_given_up() -> None:
    async with serving([hang]) as server:
        with pytest.raises(ProviderError, match=r"local:m1 sent nothing for 0.05 s"):
            await collect(server.base_url, quick(timeout=0.05))
        assert len(server.heads) == 1  # it may be working on it still


async def test_a_host_that_does_not_take_the_connection_is_tried_again_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pi_notebook.ai.transport._backoff", lambda attempt: 0.0)
    waits: list[str] = []

    def timed_out(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("", request=request)

    options = quick(connection=Connection(httpx.MockTransport(timed_out)), on_retry=lambda *said: waits.append(said[2]))
    with pytest.raises(ProviderError) as caught:
        await collect("http://far.test/v1", options)
    text = (
        "Cannot reach http://far.test/v1: no connection within 30 s. Is the server running, and is the address right?"
    )
    assert str(caught.value) == text
    assert waits == [text, text]


async def unsent(headers: dict[str, Any]) -> str:
    async with serving(replies(OK)) as server:
        request = WireRequest(server.base_url, headers, b"{}", KEY, "LOCAL_API_KEY")
        with pytest.raises(ProviderError) as caught:
            async for _ in post_events(model_at(server.base_url), quick(), request):
                pass
        assert server.heads == []
        assert server.connections <= 1
    assert KEY[:6] not in f"{caught.value!r} {request!r}"
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("hunter2\n", "holds a line break"),
        ("hunter2\r\nx-more: 1", "holds a line break"),
        (" hunter2", "begins or ends with a blank"),
        ("hunter2\0", "holds a character that HTTP does not allow"),
        ("hunter2…", "holds a character that HTTP does not allow"),
        (7, "is no text but int"),
    ],
)
async def test_a_header_that_cannot_be_sent_is_named_and_its_value_not_shown(value: Any, what: str) -> None:
    assert await unsent({"accept": "*/*", "x-pass": value}) == (
        f"local:m1: the request could not be sent: the header x-pass {what}. Correct it."
    )


async def test_a_header_with_a_name_that_cannot_be_sent() -> None:
    assert await unsent({"x pass": "hunter2"}) == (
        "local:m1: the request could not be sent: the header 'x pass' has a name that HTTP does not allow. Correct it."
    )


async def test_a_key_that_cannot_be_sent_is_named_by_its_variable() -> None:
    assert await unsent({"authorization": f"Bearer {KEY}\n"}) == (
        "local:m1: the request could not be sent: the header authorization holds a line break. "
        "Correct the API key (LOCAL_API_KEY)."
    )


# -- abort -----------------------------------------------------------------------------------------------------------


async def hang(write: Write) -> None:
    await asyncio.Event().wait()


async def hang_after_head(write: Write) -> None:
    await write(head())
    await asyncio.Event().wait()


async def hang_after_text(write: Write) -> None:
    await write(head() + b"data: 1\n\n")
    await asyncio.Event().wait()


@pytest.mark.parametrize("handler", [hang, hang_after_head, hang_after_text])
async def test_abort_ends_every_wait_at_once_and_closes_the_socket(handler: Handler) -> None:
    async with serving([handler]) as server:
        controller = AbortController()
        # From another thread, as a person's click comes.
        timer = threading.Timer(0.05, controller.abort, ["enough"])
        timer.start()
        started = time.monotonic()
        with pytest.raises(Aborted, match="enough"):
            await collect(server.base_url, quick(signal=controller.signal))
        assert time.monotonic() - started < 2  # a generous ceiling
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_abort_ends_the_wait_between_two_attempts() -> None:
    async with serving(replies(refusal(503, "retry-after: 30"))) as server:
        controller = AbortController()
        options = quick(signal=controller.signal, on_retry=lambda *_: controller.abort())
        with pytest.raises(Aborted):
            await asyncio.wait_for(collect(server.base_url, options), 10)


async def test_nothing_is_sent_when_it_was_aborted_before() -> None:
    async with serving(replies(OK)) as server:
        controller = AbortController()
        controller.abort()
        with pytest.raises(Aborted):
            await collect(server.base_url, quick(signal=controller.signal))
        assert server.heads == []


async def test_whoever_leaves_early_closes_the_socket() -> None:
    async with serving([hang_after_text]) as server:
        events = post_events(model_at(server.base_url), quick(), request_to(server.base_url))
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_a_cancelled_task_is_cancelled() -> None:
    async with serving([hang]) as server:
        task = asyncio.create_task(collect(server.base_url))
        while not server.heads:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# -- connections -----------------------------------------------------------------------------------------------------


async def test_requests_of_a_run_share_a_socket() -> None:
    connections = 0

    async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            request = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(request.lower().partition(b"content-length:")[2].split()[0]))
            body = b"data: 1\n\n"
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(keep_alive, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    connection = Connection()
    for _ in range(3):
        assert await collect(base_url, quick(connection=connection)) == [("", b"1")]
    assert connections == 1
    await connection.aclose()
    assert await collect(base_url, quick(connection=connection)) == [("", b"1")]
    assert connections == 2
    await connection.aclose()
    server.close()


async def test_the_tls_context_is_made_once_and_only_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    original = httpx.create_ssl_context
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", "/nonexistent-for-this-test")

    def count(*args: Any, **more: Any) -> ssl.SSLContext:
        made.append(original(*args, **more))
        return made[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", count)

    async def ask(connection: Connection, scheme: str) -> int:
        """How many contexts there are after a request to a port that nobody listens on."""
        with pytest.raises(httpx.ConnectError):
            await connection.send(httpx.Request("POST", f"{scheme}://127.0.0.1:1/v1"))
        return len(made)

    for contexts, connection in enumerate((Connection(), Connection())):
        assert await ask(connection, "http") == min(contexts, 1)
        assert await ask(connection, "https") == await ask(connection, "https") == 1
        await connection.aclose()


async def test_a_slow_reader_holds_the_network_up() -> None:
    written = 0

    async def flood(write: Write) -> None:
        nonlocal written
        await write(head())
        for _ in range(400):
            await write(b"data: " + b"x" * 65536 + b"\n\n")
            written += 1

    async with serving([flood]) as server:
        events = post_events(model_at(server.base_url), quick(), request_to(server.base_url))
        await anext(events)
        for _ in range(500):  # the server may run on as long as it can
            await asyncio.sleep(0)
        assert written < 400
        assert sum([len(batch) async for batch in events]) == 400


def test_importing_it_does_not_import_httpx() -> None:
    import subprocess

    code = "import sys, pi_notebook.ai.transport; print('httpx' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
