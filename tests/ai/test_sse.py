"""Server-sent events: however the network cuts the bytes, the events are the same."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai._sse import SseDecoder, SseEvent

SAMPLES = [
    b': hi\r\n\r\ndata: {"t":"a\xe2\x80\xa8b"}\r\n\r\nevent: ping\r\n\r\n',
    b"\xef\xbb\xbfdata: first\n\nevent: x\ndata: two\ndata: lines\nid: 7\nretry: 10\n\ndata:no blank\n\n",
    b"data: a\r\rdata: b\r\rdata\n\n\n\n: c\n:\ndata:  two blanks\n\nunknown: y\n\ndata: last, no blank line",
    "data: 日本😀é\n\ndata: \x0b\x0c\x85\u2029\n\n".encode(),
    b"\n\n\ndata: x\n\n\r\n\r\n",
    b"data: ends with cr\r",
]


def decode(*pieces: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush()


def test_comments_pings_and_line_separators() -> None:
    assert decode(SAMPLES[0]) == [("", '{"t":"a\u2028b"}'.encode())]


def test_names_several_lines_and_a_byte_order_mark() -> None:
    assert decode(SAMPLES[1]) == [("", b"first"), ("x", b"two\nlines"), ("", b"no blank")]


def test_carriage_returns_alone_end_lines_and_an_empty_event_counts() -> None:
    assert decode(SAMPLES[2]) == [
        ("", b"a"),
        ("", b"b"),
        ("", b""),
        ("", b" two blanks"),
        ("", b"last, no blank line"),
    ]


def test_last_event_without_a_blank_line_is_read() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: x\n") == []
    assert decoder.flush() == [("", b"x")]
    assert decoder.flush() == []


def test_many_events_come_out_of_one_piece() -> None:
    assert len(SseDecoder().feed(b"data: x\n\n" * 1000)) == 1000


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_time_grows_with_the_lines_of_an_event_not_with_their_square(end: bytes) -> None:
    decoder = SseDecoder()
    started = time.monotonic()
    for _ in range(100_000):
        assert decoder.feed(b"data: 0123456789" + end) == []
    assert decoder.feed(end) == [("", b"\n".join([b"0123456789"] * 100_000))]
    assert time.monotonic() - started < 10  # a generous ceiling: a tenth of a second is usual


def test_an_event_ends_with_its_blank_line_whatever_its_lines_end_with() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        assert SseDecoder().feed(b"data: x" + end + end) == [("", b"x")]


@pytest.mark.parametrize("sample", SAMPLES)
def test_cut_at_every_byte(sample: bytes) -> None:
    whole = decode(sample)
    assert decode(*(sample[i : i + 1] for i in range(len(sample)))) == whole
    for cut in range(len(sample) + 1):
        assert decode(sample[:cut], sample[cut:]) == whole


LINES = st.sampled_from([b"data: x", b"data:", b": c", b"event: e", b"", b"id: 1", "data: é\u2028".encode(), b"data"])
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.lists(st.integers(0, 120), max_size=6))
def test_any_cuts_give_the_same_events(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    body = b"".join(line + end for line, end in lines)
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[a:b] for a, b in itertools.pairwise(places)]
    assert decode(*pieces) == decode(body)
    assert decode(body) == by_the_book(body)


def by_the_book(body: bytes) -> list[SseEvent]:
    """The interpretation of the specification, line by line, with the last event dispatched at the end."""
    events: list[SseEvent] = []
    name, data = "", None
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if data is not None:
                events.append((name, data))
            name, data = "", None
        elif line.startswith(b"data"):
            value = line[5:].removeprefix(b" ")
            data = value if data is None else data + b"\n" + value
        elif line.startswith(b"event:"):
            name = line[6:].removeprefix(b" ").decode()
    return events
