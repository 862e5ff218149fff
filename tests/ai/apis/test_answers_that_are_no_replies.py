"""A server that answers "200 OK" with something else than a reply: what it says is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.model import Model
from pi_notebook.ai.stream import Error

from .servers import Reply, reply_to, sse
from .test_any_reply import REPLIES

SAID = "model m is not loaded"
every_api = pytest.mark.parametrize("api", REPLIES)
every_cut = pytest.mark.parametrize("pieces", [(), (1,), (1, 2, 3, 4, 5, 6), range(60)])


def answer(api: str, body: bytes, content_type: str = "application/json", pieces: Any = ()) -> Reply:
    model = Model("m", api, "p", "http://server.test")
    reply = reply_to(model, body, content_type=content_type, pieces=pieces)
    assert isinstance(reply.events[-1], Error)
    return reply


@every_api
@every_cut
@pytest.mark.parametrize("before", ["", "\n", " \r\n\r\n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize(
    "said", [{"detail": SAID}, {"message": SAID}, {"error": SAID}, {"error": {"message": SAID}}, [{"error": SAID}]]
)
def test_one_document(api: str, pieces: Any, before: str, said: Any) -> None:
    reply = answer(api, before.encode() + json.dumps(said, indent=1).encode(), pieces=pieces)
    assert SAID in reply.error
    assert "{" not in reply.error


@every_api
def test_a_document_without_an_error_is_called_no_reply(api: str) -> None:
    assert answer(api, b'{"detail": "model m is not loaded"}').error == (
        "p:m: the server sent no reply: model m is not loaded. Check the base URL."
    )
    assert answer(api, b"").error == "p:m: the server sent no reply. Check the base URL."


@every_api
@every_cut
@pytest.mark.parametrize("body", [SAID, f"{SAID}\n", f"\n\n{SAID}\n\n", f"\ufeff{SAID}", f": ping\n\n{SAID}\n"])
def test_a_plain_text(api: str, pieces: Any, body: str) -> None:
    assert answer(api, body.encode(), "text/plain", pieces).error == (
        "p:m answered with HTTP 200: http://server.test answered with plain text, not with a model's reply: "
        "model m is not loaded. Check the base URL."
    )


@every_api
def test_comments_and_names_of_events_are_no_text(api: str) -> None:
    reply = answer(api, b": ping\n\nevent: ping\n\n:\n\nid: 7\nretry: 10\ndata", "text/event-stream", (4, 11))
    assert "plain text" not in reply.error


@every_api
def test_an_error_in_mid_stream_that_is_no_event_is_shown_as_well(api: str) -> None:
    body = sse(*REPLIES[api][:2], named=True) + sse({"detail": "the worker died"})
    reply = answer(api, body, "text/event-stream")
    assert reply.error.endswith(": the worker died. Ask again.")


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=3))
def test_any_bytes_are_a_clear_error(body: bytes, pieces: list[int]) -> None:
    for api in REPLIES:
        assert "could not be understood" not in answer(api, body, "text/plain", pieces).error
