"""A reply is done when its protocol says so, whatever its connection does then."""

from __future__ import annotations

import asyncio
import json

import pytest

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import AssistantMessage, UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, stream
from pi_notebook.ai.stream import Done, Error

from ..servers import Handler, Write, head, serving
from .servers import KEY, sse
from .test_any_reply import REPLIES

pytestmark = pytest.mark.anyio
every_api = pytest.mark.parametrize("api", REPLIES)

CHUNKED = head(200, "text/event-stream", "transfer-encoding: chunked")


async def ask(api: str, base_url: str, connection: Connection | None = None) -> AssistantMessage:
    options = StreamOptions(api_key=KEY, connection=connection)
    context = Context(messages=[UserMessage("hi")])
    events = [event async for event in stream(Model("m", api, "p", base_url), context, options)]
    last = events[-1]
    assert isinstance(last, Done | Error)
    return last.message


async def answer_of(api: str, handler: Handler) -> AssistantMessage:
    async with serving([handler]) as server:
        return await asyncio.wait_for(ask(api, server.base_url), 30)  # a time-out would take 300 s


def assert_is_whole(message: AssistantMessage) -> None:
    assert message.error_message is None
    assert message.stop_reason == "tool_use"
    assert message.text == "x"
    assert [call.arguments for call in message.tool_calls] == [{"a": 1}]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def body_of(api: str) -> bytes:
    return sse(*REPLIES[api], named=True)


@every_api
async def test_a_connection_that_stays_open_after_the_end_is_not_waited_for(api: str) -> None:
    async def stay(write: Write) -> None:
        await write(head() + body_of(api))
        await asyncio.Event().wait()

    assert_is_whole(await answer_of(api, stay))


@every_api
async def test_comments_after_the_end_are_not_waited_for(api: str) -> None:
    async def ping(write: Write) -> None:
        await write(head() + body_of(api))
        while True:
            await asyncio.sleep(0.2)
            await write(b": ping\n\n")

    assert_is_whole(await answer_of(api, ping))


@every_api
async def test_a_connection_that_breaks_after_the_end_loses_nothing(api: str) -> None:
    async def cut(write: Write) -> None:
        await write(CHUNKED + chunk(body_of(api)))

    assert_is_whole(await answer_of(api, cut))


@every_api
async def test_a_connection_that_breaks_before_the_end_is_an_error(api: str) -> None:
    async def cut(write: Write) -> None:
        await write(CHUNKED + chunk(sse(*REPLIES[api][:3], named=True)))

    message = await answer_of(api, cut)
    assert "broke off in the middle of the reply" in (message.error_message or "")


@every_api
async def test_a_last_event_that_is_complete_counts_also_where_the_connection_breaks_then(api: str) -> None:
    async def cut(write: Write) -> None:
        await write(CHUNKED + chunk(body_of(api).rstrip(b"\n")))

    assert_is_whole(await answer_of(api, cut))


@every_api
async def test_a_socket_is_used_again_after_the_end(api: str) -> None:
    connections = 0

    async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            request = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(request.lower().partition(b"content-length:")[2].split()[0]))
            writer.write(CHUNKED.replace(b"connection: close\r\n", b"") + chunk(body_of(api)))
            await writer.drain()
            await asyncio.sleep(0)  # the end of the body comes by itself
            writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(keep_alive, "127.0.0.1", 0)
    connection = Connection()
    for _ in range(3):
        assert_is_whole(await ask(api, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", connection))
    assert connections == 1
    await connection.aclose()
    server.close()


@pytest.mark.parametrize("api", sorted(set(REPLIES) - {"google-generative-ai"}))  # which has no mark of the end
async def test_what_comes_after_the_end_is_not_read(api: str) -> None:
    async def answer(write: Write) -> None:
        await write(head() + sse(*REPLIES[api], {"error": {"message": "late"}}, named=True))

    assert_is_whole(await answer_of(api, answer))


@pytest.mark.parametrize("cut", [False, True])
async def test_usage_after_the_finish_reason_is_read_and_the_mark_of_the_end_not_needed(cut: bool) -> None:
    *events, usage, done = REPLIES["openai-completions"]
    assert done == "[DONE]"

    async def answer(write: Write) -> None:
        await write(CHUNKED + chunk(sse(*events)))
        await asyncio.sleep(0)
        await write(chunk(sse(usage)))
        if not cut:
            await asyncio.Event().wait()

    message = await answer_of("openai-completions", answer)
    assert_is_whole(message)
    assert message.usage.cache_read == 1


@pytest.mark.parametrize("is_whole", [False, True])
async def test_one_document_counts_if_all_of_it_came_before_the_connection_broke(is_whole: bool) -> None:
    document = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}).encode()

    async def cut(write: Write) -> None:
        await write(CHUNKED + chunk(document if is_whole else document[:-1]))

    message = await answer_of("openai-completions", cut)
    assert message.stop_reason == ("stop" if is_whole else "error")
    assert message.text == ("x" if is_whole else "")
