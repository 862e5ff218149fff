"""One way to the network for every wire protocol: keep-alive, server-sent events, retries, time-outs, abort.

A request runs in one task of its own that only collects bytes; whoever reads the events takes all that have come
at once. So an abort ends the wait at once wherever it is (connecting, waiting for the first byte, reading, backing
off), and a burst of events costs one task switch, not one each.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ProviderError
from ._body import BodyDecoder
from ._failures import failure, http_advice, provider_text, redact, request_id_of, secrets_of, unsendable_header
from ._sse import SseEvent
from .abort import Aborted
from .connection import Connection

if TYPE_CHECKING:
    import httpx

    from .model import Model, StreamOptions

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 30.0  # seconds
_BUFFER = 1 << 20  # bytes that may wait for a slow reader before the network has to wait
_ERROR_BODY = 1 << 16  # bytes of an error body that are looked at
_ERROR_BODY_TIME = 2.0  # seconds they may take to come
_AFTERTHOUGHT = 1.0  # seconds a server may be silent once its reply is whole
_LAST_BYTES = 0.02  # seconds for the end of a body whose last event has come
_CLOSING = 0.02  # seconds an abandoned request may take to close its socket before it is left to do so alone


@dataclass(slots=True)
class WireRequest:
    """One POST, ready to be sent.

    Args:
        key_name: Where the key came from (an environment variable), for the text of a refusal.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    api_key: str | None = field(default=None, repr=False)
    key_name: str = ""


async def post_events(
    model: Model, options: StreamOptions, request: WireRequest, is_whole: Callable[[], bool] = lambda: False
) -> AsyncGenerator[list[SseEvent]]:
    """POST `request` and yield the events of the reply, in batches as the network brings them.

    The first batch is empty and says that the server accepted the request. A reply that is one JSON document instead
    of a stream comes as one event with an empty name. Retries (`options.max_retries`) happen only while nothing of
    a reply has come. Leave early (`aclose`) when the reply is over: its last bytes are read if they come at once, so
    that the socket can be used again.

    Args:
        is_whole: Whether the events so far make a reply that has ended. Servers may add to it (usage, an end marker),
            but not for long, and a connection that fails from here on fails nothing.

    Raises:
        ProviderError: All that a server or a network does; its text names no key.
        Aborted: `options.signal` went up; at once, whatever was awaited.
    """
    connection = options.connection or Connection()
    signal = options.signal
    exchange = _Exchange(connection, model, options, request)
    forget = None
    if signal is not None:
        signal.raise_if_aborted()
        forget = signal.on_abort(exchange.wake_from_any_thread)
    task = asyncio.create_task(exchange.run())
    try:
        said_accepted = False
        decoder = BodyDecoder()
        give_up_at: float | None = None  # on the loop's clock
        while True:
            if signal is not None:
                signal.raise_if_aborted()
            if exchange.accepted and not said_accepted:
                said_accepted = True
                yield []
            elif exchange.chunks:
                if events := decoder.feed(exchange.take()):
                    yield events
                    give_up_at = exchange.loop.time() + _AFTERTHOUGHT if is_whole() else None
            elif exchange.finished or not await exchange.has_news(give_up_at):
                break
        rest = decoder.flush()
        if rest and (exchange.error is None or _is_json(rest[-1][1])):
            yield rest
        if exchange.error is not None and not is_whole():
            raise exchange.error
        if text := decoder.text:
            raise exchange.not_a_reply("with plain text", f": {provider_text(text)}")
    finally:
        if forget is not None:
            forget()
        await _end(task, 0.0 if signal is not None and signal.aborted else _LAST_BYTES)
        if options.connection is None:
            await connection.aclose()


async def _end(task: asyncio.Task[None], patience: float) -> None:
    """Let `task` end by itself for `patience` seconds, then cancel it."""
    if patience and not task.done():
        await asyncio.sleep(0)  # which is all that it needs where everything has come
    if patience and not task.done():
        await asyncio.wait([task], timeout=patience)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CLOSING)


def _is_json(data: bytes) -> bool:
    """Whether an event that its connection has cut is complete all the same."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


class _Exchange:
    """A request and its reply, run by a task. `news` is set whenever something changed."""

    def __init__(self, connection: Connection, model: Model, options: StreamOptions, request: WireRequest) -> None:
        self.connection = connection
        self.model = model
        self.options = options
        self.request = request
        self.secrets = secrets_of(request.api_key, request.headers)
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self.room = asyncio.Event()
        self.chunks: list[bytes] = []
        self.waiting_bytes = 0
        self.accepted = False
        self.received = False
        self.finished = False
        self.error: ProviderError | None = None

    def wake_from_any_thread(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.news.set)
        except RuntimeError:  # the loop is closed: nobody waits
            pass

    async def has_news(self, give_up_at: float | None) -> bool:
        """Wait until something has changed; False if nothing has when `give_up_at` comes."""
        if give_up_at is None:
            await self.news.wait()
        else:
            try:
                async with asyncio.timeout_at(give_up_at):
                    await self.news.wait()
            except TimeoutError:
                return False
        self.news.clear()
        return True

    def take(self) -> bytes:
        chunks, self.chunks = self.chunks, []
        self.waiting_bytes = 0
        self.room.set()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def run(self) -> None:
        """Send, and send again where that is allowed; ends with `finished`, and `error` if it failed."""
        import httpx

        try:
            attempt = 0
            while True:
                try:
                    await self._send()
                    return
                except _Refused as refusal:
                    error, delay = self._refusal(refusal, attempt)
                except httpx.LocalProtocolError:
                    raise
                except httpx.HTTPError as problem:
                    error = self._network_failure(problem)
                    is_final = self.received or isinstance(
                        problem, httpx.ReadTimeout | httpx.WriteTimeout | httpx.DecodingError
                    )
                    delay = None if is_final else _backoff(attempt)
                if delay is None or attempt >= self.options.max_retries or self.received:
                    self.error = error
                    return
                attempt += 1
                logger.info("attempt %d in %.1f s: %s", attempt + 1, delay, error)
                if self.options.on_retry is not None:
                    self.options.on_retry(attempt, delay, str(error))
                await asyncio.sleep(delay)
        except ProviderError as error:
            self.error = error
        except Exception as problem:
            self.error = self._unsent(problem)
        finally:
            self.finished = True
            self.news.set()

    async def _send(self) -> None:
        import httpx

        message = httpx.Request(
            "POST",
            _url(self.request.url),
            content=self.request.body,
            headers={"accept-encoding": "identity", **self.request.headers},
            extensions={"timeout": _timeout(self.options.timeout)},
        )
        response = await self.connection.send(message)
        try:
            if not response.is_success:
                await self._refuse(response)
            content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if content_type == "text/html":
                raise self.not_a_reply("with a web page")
            self.accepted = True
            self.news.set()
            # `aiter_bytes` would give the same: a layer less matters where each chunk is one small event.
            is_plain = "content-encoding" not in response.headers
            body = response.stream if is_plain else response.aiter_bytes()
            assert isinstance(body, AsyncIterable)
            async for chunk in body:
                self.received = True
                self.chunks.append(chunk)
                self.waiting_bytes += len(chunk)
                self.news.set()
                if self.waiting_bytes > _BUFFER:
                    self.room.clear()
                    await self.room.wait()
        finally:
            await response.aclose()

    async def _refuse(self, response: httpx.Response) -> None:
        said = provider_text((await _error_body(response)).decode("utf-8", "replace"))
        status = response.status_code
        if 300 <= status < 400:
            said = said or f"the server points to {response.headers.get('location', 'another address')}"
        raise _Refused(status, said, response.headers)

    def not_a_reply(self, how: str, said: str = "") -> ProviderError:
        """The error for a success that is none."""
        text = f"{self.model.base_url} answered {how}, not with a model's reply{said}"
        return self._failure(text, status=200, advice="Check the base URL.")

    def _failure(self, said: str, **more: Any) -> ProviderError:
        return failure(self.model, said, self.secrets, sent_bytes=len(self.request.body), **more)

    def _refusal(self, refusal: _Refused, attempt: int) -> tuple[ProviderError, float | None]:
        """The error, and seconds to wait before the next attempt; None where there must be none."""
        status, headers = refusal.status, refusal.headers
        wish = headers.get("x-should-retry")
        advice = http_advice(self.model, status, self.request.key_name)
        delay = None
        if wish != "false" and (wish == "true" or status in (408, 409, 429) or status >= 500):
            delay = _retry_after(headers)
            limit = self.options.max_retry_delay
            if delay is None:
                delay = _backoff(attempt)
            elif 0 < limit < delay:
                advice = f"The server asks to wait {delay:.0f} s; by itself a request waits {limit:g} s at most."
                delay = None
        error = self._failure(refusal.said, status=status, request_id=request_id_of(headers), advice=advice)
        return error, delay

    def _unsent(self, problem: Exception) -> ProviderError:
        """The error for a request that never left this machine; `problem` may quote a header, so it gives way."""
        why, advice = f"{type(problem).__name__}: {problem}", ""
        if header := unsendable_header(self.request.headers):
            name, what = header
            why = f"the header {name} {what}"
            key = self.request.api_key
            is_key = key and key in str(self.request.headers.get(name))
            advice = f"Correct the API key ({self.request.key_name or 'in a header'})." if is_key else "Correct it."
        return self._failure(f"the request could not be sent: {why}", advice=advice)

    def _network_failure(self, problem: httpx.HTTPError) -> ProviderError:
        import httpx

        reason = redact(" ".join(str(problem).split()), self.secrets)
        reason = reason.rstrip(".") or type(problem).__name__
        address = self.model.base_url or self.request.url
        if isinstance(problem, httpx.ConnectTimeout | httpx.PoolTimeout):
            text = f"Cannot reach {address}: no connection within {CONNECT_TIMEOUT:g} s. {_REACH_ADVICE}"
        elif isinstance(problem, httpx.ConnectError | httpx.ProxyError):
            advice = _TLS_ADVICE if "CERTIFICATE" in reason.upper() else _REACH_ADVICE
            text = f"Cannot reach {address}: {reason}. {advice}"
        elif isinstance(problem, httpx.TimeoutException):
            text = f"{self.model.label} sent nothing for {self.options.timeout:g} s, so the request was given up."
        elif self.received:
            text = f"The connection to {address} broke off in the middle of the reply: {reason}. Ask again."
        elif isinstance(problem, httpx.DecodingError):
            text = f"{address} sent a reply that is not encoded as it says: {reason}. {_REACH_ADVICE}"
        else:
            text = f"{address} closed the connection without an answer: {reason}. {_REACH_ADVICE}"
        return ProviderError(redact(text, self.secrets))


_REACH_ADVICE = "Is the server running, and is the address right?"
_TLS_ADVICE = "Its certificate is not trusted here: name your authority's file in SSL_CERT_FILE."


class _Refused(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, said: str, headers: Mapping[str, str]) -> None:
        self.status = status
        self.said = said
        self.headers = headers


async def _error_body(response: httpx.Response) -> bytes:
    """What comes of an error's body in time, also where it is cut or not encoded as it says: the status counts."""
    import httpx

    body = b""
    try:
        async with asyncio.timeout(_ERROR_BODY_TIME):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _ERROR_BODY:
                    break
    except (httpx.HTTPError, TimeoutError):
        pass
    encoding = response.headers.get("content-encoding")
    try:
        body = httpx.Response(200, headers={"content-encoding": encoding} if encoding else {}, content=body).content
    except httpx.DecodingError:
        pass
    return body[:_ERROR_BODY]


@functools.lru_cache(maxsize=8)
def _timeout(seconds: float) -> dict[str, float | None]:
    import httpx

    return httpx.Timeout(seconds, connect=min(CONNECT_TIMEOUT, seconds)).as_dict()


@functools.lru_cache(maxsize=16)
def _url(text: str) -> httpx.URL:
    import httpx

    return httpx.URL(text)


def _backoff(attempt: int) -> float:
    return min(0.5 * 2.0**attempt, 8.0) * random.uniform(0.75, 1.0)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            from email.utils import parsedate_to_datetime

            try:
                return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
            except ValueError:
                continue
    return None


__all__ = ["Aborted", "SseEvent", "WireRequest", "post_events"]
