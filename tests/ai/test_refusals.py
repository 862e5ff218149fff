"""A server that refuses: what is said, what is tried again and when."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest

from pi_notebook.errors import ContextOverflowError, ProviderError

from .servers import Write, head, replies, serving
from .test_transport import KEY, OK, collect, quick, refusal

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_a_busy_server_is_asked_again_and_that_is_said(status: int) -> None:
    told: list[tuple[int, float, str]] = []
    answers = replies(refusal(status, "retry-after-ms: 1"), refusal(status, "retry-after: 0"), OK)
    async with serving(answers) as server:
        options = quick(on_retry=lambda attempt, delay, reason: told.append((attempt, delay, reason)))
        assert await collect(server.base_url, options) == [("", b"1"), ("", b"2")]
    assert [(attempt, delay) for attempt, delay, _ in told] == [(1, 0.001), (2, 0.0)]
    assert f"HTTP {status}: no." in told[0][2]


async def test_twice_at_most() -> None:
    async with serving(replies(refusal(503, "retry-after-ms: 1"))) as server:
        with pytest.raises(ProviderError, match="HTTP 503") as caught:
            await collect(server.base_url)
        assert len(server.heads) == 3
        assert caught.value.status == 503


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_for_good_is_not_repeated(status: int) -> None:
    async with serving(replies(refusal(status, "x-request-id: req_7"))) as server:
        with pytest.raises(ProviderError) as caught:
            await collect(server.base_url)
        assert len(server.heads) == 1
    assert caught.value.request_id == "req_7"
    assert "(request id req_7)" in str(caught.value)


async def test_the_server_decides_whether_to_be_asked_again() -> None:
    async with serving(replies(refusal(503, "x-should-retry: false"))) as server:
        with pytest.raises(ProviderError):
            await collect(server.base_url)
        assert len(server.heads) == 1
    async with serving(replies(refusal(400, "x-should-retry: true", "retry-after-ms: 0"), OK)) as server:
        assert await collect(server.base_url)


async def test_a_wait_that_is_too_long_ends_the_request() -> None:
    in_two_hours = formatdate(time.time() + 7200, usegmt=True)
    for header in ("retry-after: 7200", f"retry-after: {in_two_hours}", "retry-after-ms: 7200000"):
        async with serving(replies(refusal(429, header))) as server:
            with pytest.raises(ProviderError, match=r"asks to wait (7200|7199) s; by itself a request waits 60 s"):
                await collect(server.base_url)
            assert len(server.heads) == 1


async def test_without_a_wish_of_the_server_the_wait_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: _record(waits, seconds))
    async with serving(replies(refusal(500), refusal(500), OK)) as server:
        await collect(server.base_url)
    assert 0.37 <= waits[0] <= 0.5
    assert 0.75 <= waits[1] <= 1.0


async def _record(waits: list[float], seconds: float) -> None:
    waits.append(seconds)


async def test_a_refused_key_is_named_by_its_variable_and_never_shown() -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY[:12]}...{KEY[-8:]}"}})
    async with serving(replies(refusal(401, body=body))) as server:
        with pytest.raises(ProviderError) as caught:
            await collect(server.base_url)
    assert str(caught.value) == (
        "local:m1 answered with HTTP 401: Incorrect API key provided: ***...***. "
        "Check the API key (LOCAL_API_KEY): the server did not accept it."
    )


async def test_a_transcript_too_long_says_so() -> None:
    body = '{"error":{"message":"request (9030 tokens) exceeds the available context size (8192 tokens)"}}'
    async with serving(replies(refusal(400, body=body))) as server:
        with pytest.raises(ContextOverflowError, match=r"9030 tokens.*8192 tokens.*start a new one"):
            await collect(server.base_url)


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with serving(replies(refusal(307, "location: http://elsewhere.test/v1", body=""))) as server:
        with pytest.raises(ProviderError, match=r"points to http://elsewhere.test/v1"):
            await collect(server.base_url)


NO = b'{"error":{"message":"no"}}'


def cut(status: int) -> bytes:
    return head(status, "application/json", "content-length: 1000", "x-request-id: req_7") + NO


def badly_chunked(status: int) -> bytes:
    return head(status, "application/json", "transfer-encoding: chunked", "x-request-id: req_7") + (
        b"%x\r\n%b\r\nno number\r\n" % (len(NO), NO)
    )


def not_gzip(status: int) -> bytes:
    return refusal(status, "content-encoding: gzip", "x-request-id: req_7")


def cut_json(status: int) -> bytes:
    return head(status, "application/json", "content-length: 1000", "x-request-id: req_7") + NO[:-2]


def cut_gzip(status: int) -> bytes:
    body = gzip.compress(NO)
    return head(status, "application/json", "content-encoding: gzip", "x-request-id: req_7") + body[:-4]


@pytest.mark.parametrize("answer", [cut, badly_chunked, not_gzip, cut_json, cut_gzip])
@pytest.mark.parametrize("status", [400, 401, 503])
async def test_a_status_counts_also_where_the_body_of_the_error_is_damaged(
    status: int, answer: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pi_notebook.ai.transport._backoff", lambda attempt: 0.0)
    async with serving(replies(answer(status))) as server:
        with pytest.raises(ProviderError, match=f"^local:m1 answered with HTTP {status}: no\\. ?") as caught:
            await collect(server.base_url)
        assert len(server.heads) == (3 if status == 503 else 1)
    assert (caught.value.status, caught.value.request_id) == (status, "req_7")


@pytest.mark.parametrize("limit", [0.05, 300.0])
async def test_a_status_counts_also_where_the_body_of_the_error_never_ends(
    limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pi_notebook.ai.transport._ERROR_BODY_TIME", 0.2)

    async def hang_in_body(write: Write) -> None:
        await write(head(400, "application/json") + NO)
        await asyncio.Event().wait()

    async with serving([hang_in_body]) as server:
        with pytest.raises(ProviderError, match=r"^local:m1 answered with HTTP 400: no\.$"):
            await collect(server.base_url, quick(timeout=limit))
        assert len(server.heads) == 1


async def test_a_reply_that_is_not_encoded_as_it_says_is_not_asked_for_again() -> None:
    body = head(200, "text/event-stream", "content-encoding: gzip") + b"data: 1\n\n"
    async with serving(replies(body)) as server:
        with pytest.raises(ProviderError, match="sent a reply that is not encoded as it says"):
            await collect(server.base_url)
        assert len(server.heads) == 1
