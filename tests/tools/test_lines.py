from __future__ import annotations

import io
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.tools import _lines
from pi_notebook.tools._lines import LineReader

DATA = st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r\n", b"\r", "é".encode()]), max_size=25).map(b"".join)


def expected_lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    return [line.removesuffix(b"\r") for line in lines] + ([last] if last else [])


@given(DATA, st.integers(1, 9))
def test_lines_do_not_depend_on_how_the_file_is_read(data: bytes, chunk: int) -> None:
    with mock.patch.object(_lines, "CHUNK", chunk):
        reader = LineReader(io.BytesIO(data))
        found = []
        while (line := reader.line(100)) is not None:
            assert line.length == len(line.data)
            found.append(line.data)
    assert found == expected_lines(data)


@given(DATA, st.integers(1, 9), st.integers(0, 12))
def test_skipping_counts_lines_and_stops_at_the_end(data: bytes, chunk: int, lines: int) -> None:
    with mock.patch.object(_lines, "CHUNK", chunk):
        reader = LineReader(io.BytesIO(data))
        everything = expected_lines(data)
        assert reader.skip(lines) == min(lines, len(everything))
        line = reader.line(100)
    assert (line.data if line else None) == (everything[lines] if lines < len(everything) else None)


def test_a_long_line_is_kept_only_up_to_the_cap() -> None:
    reader = LineReader(io.BytesIO(b"x" * 3_000_000 + b"\r\nnext"))
    line = reader.line(10)
    assert line is not None
    assert (line.data, line.length) == (b"x" * 10, 3_000_000)
    following = reader.line(10)
    assert following is not None
    assert following.data == b"next"


@pytest.mark.parametrize("cap", range(1, 12))
def test_a_cap_within_a_character_drops_it(cap: int) -> None:
    line = LineReader(io.BytesIO("aé€🙂z\n".encode())).line(cap)
    assert line is not None
    assert "aé€🙂z".startswith(line.text)


def test_undecodable_bytes_are_replaced() -> None:
    line = LineReader(io.BytesIO(b"caf\xe9 au lait")).line(100)
    assert line is not None
    assert line.text == "caf\ufffd au lait"
