"""Six characters of a key in a row are a leak, in whatever a person, a log or a file can see."""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import replace
from typing import Any

import pytest

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, stream
from pi_notebook.ai.transport import WireRequest, post_events
from pi_notebook.errors import ModelError, ProviderError

from .servers import head, replies, serving

pytestmark = pytest.mark.anyio
KEY = "sk-AbCd0123-EfGh4567_IjKl89"
APIS = ("openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai")
ECHO = f"you sent {KEY}, that is {KEY[3:12]} and {KEY[-9:]}"
WORDS = {"type": KEY, "choices": 1, "usage": KEY, "candidates": KEY}
ECHOES = {
    "refused": head(401, "application/json") + json.dumps({"error": {"message": ECHO}}).encode(),
    "refused as a page": head(403, "text/html") + f"<h1>{ECHO}</h1>".encode(),
    "sent elsewhere": head(302, "text/plain", f"location: http://other.test/?key={KEY}"),
    "an error with status 200": head(200, "application/json") + json.dumps({"error": {"message": ECHO}}).encode(),
    "an error in the stream": head() + f"event: error\ndata: {json.dumps({'error': {'message': ECHO}})}\n\n".encode(),
    "no JSON": head() + f"event: message_start\ndata: {{{ECHO}\n\n".encode(),
    "JSON of another form": head() + f"event: message_start\ndata: {json.dumps([KEY, {'choices': KEY}])}\n\n".encode(),
    "words where numbers belong": head() + f"event: message_delta\ndata: {json.dumps(WORDS)}\n\n".encode(),
    "headers that echo": head(500, "text/plain", f"x-request-id: {KEY}", f"set-cookie: k={KEY}"),
    "nothing": b"",
    "no HTTP": f"{KEY}\r\n\r\n".encode(),
}


def leaks(shown: str) -> list[str]:
    return [KEY[i : i + 6] for i in range(len(KEY) - 5) if KEY[i : i + 6] in shown]


async def all_that_is_shown(model: Model, options: StreamOptions) -> str:
    events = [event async for event in stream(model, Context(messages=[UserMessage("hi")]), options)]
    return f"{model!r} {options!r} {events!r} {getattr(events[-1], 'message', None)!r}"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("way", ["option", "header"])
async def test_no_server_can_make_a_key_appear(
    api: str, answer: bytes, way: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(replies(answer)) as server:
        model = Model("m", api, "local", server.base_url)
        options = StreamOptions(max_retries=0, connection=Connection())
        if way == "option":
            options.api_key = KEY
        else:
            model = replace(model, headers={"Authorization": f"Bearer {KEY}"})
        shown = await all_that_is_shown(model, options)
        await options.connection.aclose()  # type: ignore[union-attr]
        assert KEY in server.heads[0], "the key was not even sent"
    printed = capfd.readouterr()
    messages = [record.getMessage() for record in caplog.records]
    if KEY.encode() in answer.partition(b"\r\n\r\n")[0]:  # httpcore logs a server's own headers as they came
        messages = [message for message in messages if "receive_response_headers" not in message]
    traces = "".join("".join(traceback.format_exception(*r.exc_info)) for r in caplog.records if r.exc_info)
    assert "httpcore" in {record.name.partition(".")[0] for record in caplog.records}
    assert leaks(f"{shown} {messages} {traces} {printed.out} {printed.err}") == []


async def test_what_is_said_about_a_retry_shows_no_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told: list[str] = []
    busy = head(503, "application/json", "retry-after-ms: 1") + json.dumps({"error": {"message": ECHO}}).encode()
    async with serving(replies(busy)) as server:
        options = StreamOptions(api_key=KEY, on_retry=lambda *said: told.append(str(said)))
        await all_that_is_shown(Model("m", APIS[0], "local", server.base_url), options)
    assert len(told) == 2 and "you sent ***" in told[0]
    logged = [record.getMessage() for record in caplog.records if record.name == "pi_notebook.ai.transport"]
    assert [text[:9] for text in logged] == ["attempt 2", "attempt 3"]
    assert leaks(f"{told} {caplog.text}") == []


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\0x", f"{KEY} \u20ac"], ids=["newline", "nul", "euro"])
async def test_a_key_that_no_header_can_carry_is_not_shown(
    api: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    model = Model("m", api, "local", "http://127.0.0.1:9/v1")
    shown = await all_that_is_shown(model, StreamOptions(api_key=key, max_retries=0))
    assert "type='error'" in shown or "Error(" in shown
    assert leaks(f"{shown} {caplog.text}") == []


async def test_a_traceback_shows_no_key_either() -> None:
    request = WireRequest("http://127.0.0.1:9/v1", {"x-api-key": f"{KEY}\n"}, b"{}", f"{KEY}\n")
    model = Model("m", APIS[0], "local", "http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError) as caught:
        async for _ in post_events(model, StreamOptions(max_retries=0), request):
            pass
    assert leaks("".join(traceback.format_exception(caught.value))) == []


def test_a_password_in_an_address_is_refused() -> None:
    with pytest.raises(ModelError) as caught:
        Model("m", APIS[0], "local", f"https://me:{KEY}@server.test/v1")
    assert str(caught.value) == "A base URL must not hold a password: put it into a header."


def test_reprs_of_what_holds_a_key() -> None:
    headers: dict[str, Any] = {"x-api-key": KEY}
    request = WireRequest("http://server.test", headers, KEY.encode(), KEY)
    model = Model("m", APIS[0], headers=headers)
    assert leaks(f"{request!r} {model!r} {StreamOptions(api_key=KEY, headers=headers)!r}") == []
