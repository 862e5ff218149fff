from __future__ import annotations

import base64
import io
import json
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pi_notebook.agent.single_call import run_tool_call
from pi_notebook.ai.messages import ImageContent, ToolCall
from pi_notebook.tools._image import MAX_BASE64, MAX_SIDE
from pi_notebook.tools._read import ReadDetails

from .conftest import Tools


def test_a_small_file_comes_whole(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\n")
    result = tools.read.call(path="a.txt")
    assert result.text == "one\ntwo"
    assert result.details == ReadDetails("text", "a.txt", 1, 2, 2)


def test_a_window_says_how_to_go_on(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    result = tools.read.call(path="a.txt", offset=3, limit=2)
    assert result.text == "3\n4\n\n[Lines 3-4 of 10. Go on with offset=5.]"
    assert tools.read.call(path="a.txt", offset=9, limit=2).text == "9\n10"


@given(st.integers(0, 40), st.integers(0, 45), st.integers(1, 20))
def test_following_the_hints_reads_every_line_once(lines: int, offset: int, limit: int) -> None:
    import re
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f").write_text("".join(f"line {n}\n" for n in range(1, lines + 1)))
        read = Tools(Path(folder)).read
        seen: list[str] = []
        at: int | None = offset
        while at is not None:
            result = read.call(path="f", offset=at, limit=limit)
            if result.is_error:
                assert at > max(lines, 1)
                return
            body, _, note = result.text.partition("\n\n[")
            seen += body.split("\n")
            following = re.search(r"offset=(\d+)", note)
            at = int(following[1]) if following else None
        first = max(1, offset)
        assert seen == ([f"line {n}" for n in range(first, lines + 1)] or ["(empty file)"])


def test_two_thousand_lines_at_once(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("x\n" * 2_001)
    text = tools.read.call(path="a.txt").text
    assert text.count("x\n") == 2_000
    assert text.endswith("\n\n[Lines 1-2000 of 2,001. Go on with offset=2001.]")


def test_fifty_kilobytes_at_once_in_whole_lines(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text(("é" * 500 + "\n") * 100)
    result = tools.read.call(path="a.txt")
    body, _, note = result.text.partition("\n\n")
    assert len(body.encode()) <= 50 * 1024
    assert set(body.split("\n")) == {"é" * 500}
    assert note == "[Lines 1-51 of 100 (50 KB limit). Go on with offset=52.]"


def test_a_line_over_the_limit_is_cut_and_passed_over(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("é" * 50_000 + "\nnext\n")
    result = tools.read.call(path="a.txt")
    body, _, note = result.text.partition("\n\n")
    assert body == "é" * 25_600
    assert note == "[Line 1 is cut: 47.7 KB of it are left out. Lines 1-1 of 2 (50 KB limit). Go on with offset=2.]"
    assert tools.read.call(path="a.txt", offset=2).text == "next"


def test_a_last_line_over_the_limit_only_says_that(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("x" * 60_000)
    assert tools.read.call(path="a.txt").text.endswith("x\n\n[Line 1 is cut: 8.6 KB of it are left out.]")


def test_an_offset_past_the_end_is_an_error(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_text("1\n2\n")
    result = tools.read.call(path="a.txt", offset=4)
    assert result.is_error
    assert result.text == "offset 4 is past the end of a.txt, which has 2 lines."


def test_an_empty_file_says_so(tools: Tools, root: Path) -> None:
    (root / "a.txt").touch()
    assert tools.read.call(path="a.txt").text == "(empty file)"


def test_a_missing_file_is_an_error_with_a_way_on(tools: Tools, root: Path) -> None:
    (root / "report.md").touch()
    result = tools.read.call(path="reprot.md")
    assert result.is_error
    assert result.text == "There is no file reprot.md. Similar names: report.md."


def test_a_folder_is_an_error(tools: Tools, root: Path) -> None:
    (root / "d").mkdir()
    assert tools.read.call(path="d").text == "d is a folder; list it with ls."
    assert tools.read.call(path=".").text == ". is a folder; list it with ls."


def test_a_byte_order_mark_is_not_text(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_bytes("\ufeffhello\n".encode())
    assert tools.read.call(path="a.txt").text == "hello"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_is_read(tools: Tools, root: Path, encoding: str) -> None:
    (root / "a.csv").write_bytes("\ufeffé,2\r\n3,4\r\n".encode(encoding))
    assert tools.read.call(path="a.csv").text == "é,2\n3,4\n\n[The file is UTF-16; shown as UTF-8.]"


def test_other_encodings_are_shown_as_far_as_they_can(tools: Tools, root: Path) -> None:
    (root / "a.txt").write_bytes(b"caf\xe9\n")
    assert tools.read.call(path="a.txt").text == "caf\ufffd\n\n[Bytes that are not UTF-8 are shown as \ufffd.]"


@pytest.mark.parametrize(
    ("name", "data", "mime_type"),
    [
        ("a.pdf", b"%PDF-1.7\n%abc", "application/pdf"),
        ("a.xlsx", b"PK\x03\x04\0\0", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.dat", b"PK\x03\x04\0\0", "application/zip"),
        ("a.parquet", b"PAR1\0\0\0", "application/vnd.apache.parquet"),
        ("a.db", b"SQLite format 3\0", "application/vnd.sqlite3"),
        ("a.bin", b"\0\1\2\3", "application/octet-stream"),
        ("a.npy", b"\x93NUMPY\1\0", "application/x-npy"),
        ("prog", b"\x7fELF\2\1\1\0", "application/x-elf"),
        ("noise", bytes(range(1, 32)) * 3, "application/octet-stream"),
    ],
)
def test_binary_is_refused_with_its_type(tools: Tools, root: Path, name: str, data: bytes, mime_type: str) -> None:
    (root / name).write_bytes(data)
    result = tools.read.call(path=name)
    assert result.is_error
    assert result.text.startswith(f"{name} is binary ({mime_type}, ")
    assert result.text.endswith("Load it with python if you need what is in it.")


def test_svg_is_text(tools: Tools, root: Path) -> None:
    (root / "a.svg").write_text("<svg/>")
    assert tools.read.call(path="a.svg").text == "<svg/>"


# ---- images ---------------------------------------------------------------------------------------


def image_file(path: Path, form: str, size: tuple[int, int] = (40, 20), **options: Any) -> bytes:
    image = Image.new("P" if form == "GIF" else "RGB", size, 7)
    image.save(path, form, **options)
    return path.read_bytes()


def shown_image(blocks: Any) -> tuple[str, Image.Image]:
    (block,) = [block for block in blocks if isinstance(block, ImageContent)]
    return block.mime_type, Image.open(io.BytesIO(base64.b64decode(block.data)))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_small_image_is_sent_as_it_is(tools: Tools, root: Path, form: str) -> None:
    data = image_file(root / "pic.bin", form)
    result = tools.read.call(path="pic.bin")
    mime_type = f"image/{form.lower()}"
    assert result.text == f"[pic.bin: {mime_type}, 40 x 20]"
    assert result.content[1] == ImageContent(base64.b64encode(data).decode(), mime_type)
    assert result.details == ReadDetails("image", "pic.bin", mime_type=mime_type, width=40, height=20)


@pytest.mark.parametrize("form", ["GIF", "BMP"])
def test_formats_that_not_every_provider_takes_become_png(tools: Tools, root: Path, form: str) -> None:
    image_file(root / "pic", form)
    mime_type, image = shown_image(tools.read.call(path="pic").content)
    assert (mime_type, image.size) == ("image/png", (40, 20))


def test_a_large_image_is_scaled_and_says_by_how_much(tools: Tools, root: Path) -> None:
    image_file(root / "big.png", "PNG", (5_000, 1_000))
    result = tools.read.call(path="big.png")
    assert result.text == (
        "[big.png: image/png, 5000 x 1000; shown at 2000 x 400; multiply coordinates by 2.50 for the file's own]"
    )
    assert shown_image(result.content)[1].size == (MAX_SIDE, 400)


def test_an_image_of_noise_is_made_to_fit(tools: Tools, root: Path) -> None:
    noise = random.Random(1).randbytes(1_800 * 1_800 * 3)
    Image.frombytes("RGB", (1_800, 1_800), noise).save(root / "noise.png", compress_level=0)
    (block,) = [block for block in tools.read.call(path="noise.png").content if isinstance(block, ImageContent)]
    assert len(block.data) <= MAX_BASE64


def test_a_photo_is_turned_upright(tools: Tools, root: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    image_file(root / "photo.jpg", "JPEG", (40, 20), exif=exif)
    result = tools.read.call(path="photo.jpg")
    assert shown_image(result.content)[1].size == (20, 40)
    assert result.text == "[photo.jpg: image/jpeg, 20 x 40]"


def test_of_an_animation_the_first_picture_is_shown(tools: Tools, root: Path) -> None:
    frames = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (0, 100, 200)]
    frames[0].save(root / "a.gif", save_all=True, append_images=frames[1:])
    assert tools.read.call(path="a.gif").text == "[a.gif: image/gif, 8 x 8; the first of 3 pictures]"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_every_kind_of_pixel_can_be_scaled(tools: Tools, root: Path, mode: str) -> None:
    Image.new(mode, (2_100, 10)).save(root / "pic", "JPEG" if mode == "CMYK" else "PNG")
    assert shown_image(tools.read.call(path="pic").content)[1].size == (2_000, 10)


def test_a_broken_image_is_an_error(tools: Tools, root: Path) -> None:
    data = image_file(root / "a.png", "PNG")
    (root / "a.png").write_bytes(data[:50])
    result = tools.read.call(path="a.png")
    assert result.is_error
    assert result.text.startswith("a.png begins like image/png but cannot be decoded: ")
    (root / "a.png").write_bytes(data[:8] + bytes(50))
    text = tools.read.call(path="a.png").text
    assert text == "a.png begins like image/png but cannot be decoded: it is damaged or cut off."


def test_an_image_bomb_is_refused_before_it_is_decoded(tools: Tools, root: Path) -> None:
    data = bytearray(image_file(root / "a.bmp", "BMP"))
    data[18:26] = (30_000).to_bytes(4, "little") * 2
    (root / "a.bmp").write_bytes(data)
    result = tools.read.call(path="a.bmp")
    assert result.is_error
    assert "pixels" in result.text


# ---- notebooks ------------------------------------------------------------------------------------


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)})


def code(source: str | list[str], *outputs: dict[str, Any], count: int | None = 1) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "execution_count": count, "metadata": {}, "outputs": list(outputs)}


def test_a_notebook_is_read_as_cells(tools: Tools, root: Path) -> None:
    png = base64.b64encode(image_file(root / "p.png", "PNG")).decode()
    text = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", "text"], "metadata": {}},
        code(
            ["1 + 1"],
            {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "2"}, "metadata": {}, "execution_count": 1},
            {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}, "metadata": {}},
        ),
        code("1/0", {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]}),
    )
    (root / "n.ipynb").write_text(text)
    result = tools.read.call(path="n.ipynb")
    assert result.text == (
        "--- cell 1, markdown ---\n# Title\ntext\n\n"
        "--- cell 2, code, [1] ---\n1 + 1\n[output, stdout]\na\nb\n[result]\n2\n[output, image/png]\n<Figure>\n\n"
        "--- cell 3, code, [1] ---\n1/0\n[error]\nE: v"
    )
    assert shown_image(result.content)[1].size == (40, 20)
    assert result.details == ReadDetails("notebook", "n.ipynb", 1, 3, 3)


def test_a_window_of_cells(tools: Tools, root: Path) -> None:
    (root / "n.ipynb").write_text(notebook(*[code(f"x = {n}", count=None) for n in range(1, 6)]))
    assert tools.read.call(path="n.ipynb", offset=2, limit=1).text == (
        "--- cell 2, code ---\nx = 2\n\n[Cells 2-2 of 5. Go on with offset=3.]"
    )
    assert tools.read.call(path="n.ipynb", offset=6).is_error


def test_long_outputs_of_cells_are_cut_with_their_size(tools: Tools, root: Path) -> None:
    long = {"output_type": "stream", "name": "stdout", "text": "line\n" * 100}
    (root / "n.ipynb").write_text(notebook(code("f()", long)))
    assert tools.read.call(path="n.ipynb").text.endswith("line\n[60 lines (301 bytes) left out]")


def test_a_cell_over_the_limit_is_cut(tools: Tools, root: Path) -> None:
    (root / "n.ipynb").write_text(notebook(code("x" * 60_000), code("y")))
    text = tools.read.call(path="n.ipynb").text
    assert len(text.encode()) < 52_000
    assert "[8.6 KB of this cell are left out]" in text
    assert text.endswith("[Cells 1-1 of 2. Go on with offset=2.]")


def test_notebooks_of_format_3_are_read(tools: Tools, root: Path) -> None:
    cell = {
        "cell_type": "code",
        "input": "1",
        "prompt_number": 4,
        "outputs": [{"output_type": "pyout", "text": ["one"], "prompt_number": 4}],
    }
    (root / "n.ipynb").write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": [cell]}]}))
    assert tools.read.call(path="n.ipynb").text == "--- cell 1, code, [4] ---\n1\n[result]\none"


@pytest.mark.parametrize("text", ["{", "[1]", '{"cells": 3}', "[" * 100_000, '{"a": 1}'])
def test_what_is_no_notebook_is_read_as_text(tools: Tools, root: Path, text: str) -> None:
    (root / "n.ipynb").write_text(text)
    result = tools.read.call(path="n.ipynb")
    assert not result.is_error
    assert result.text.startswith(text[:100])


@pytest.mark.parametrize(
    "cell",
    [
        {},
        {"cell_type": 3, "source": None, "outputs": 7},
        code("x", {"output_type": "stream"}),
        code("x", {"output_type": "display_data", "data": 4}),
        code("x", {"output_type": "display_data", "data": {"image/png": "not base64!"}}),
        code("x", {"output_type": "display_data", "data": {"image/png": ["aGVs", "bG8="]}}),
        code("x", {"output_type": "error"}),
        {"cell_type": "code", "source": "x", "outputs": ["text", None]},
    ],
)
def test_odd_cells_are_shown_as_far_as_they_can(tools: Tools, root: Path, cell: dict[str, Any]) -> None:
    (root / "n.ipynb").write_text(notebook(cell, code("last")))
    result = tools.read.call(path="n.ipynb")
    assert not result.is_error, result.text
    assert "last" in result.text


# ---- hostile --------------------------------------------------------------------------------------


def test_a_sparse_gigabyte_is_refused_without_reading_it(tools: Tools, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 30)
    assert tools.read.call(path="huge").text.startswith("huge is binary (application/octet-stream, 1.0 GB)")


def test_a_gigabyte_of_text_is_read_in_small_memory(tools: Tools, root: Path) -> None:
    import tracemalloc

    with (root / "huge.txt").open("wb") as file:
        file.write(b"first\nsecond\n" * 1_000)
        file.truncate(1 << 30)
    tracemalloc.start()
    result = tools.read.call(path="huge.txt", limit=2)
    far = tools.read.call(path="huge.txt", offset=2_000, limit=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.text == "first\nsecond\n\n[Lines 1-2 of more, in 1.0 GB. Go on with offset=3.]"
    assert far.text.startswith("second\n")
    assert peak < 40_000_000


def test_pipes_sockets_and_devices_are_refused_without_waiting(tools: Tools, root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert tools.read.call(path="pipe").text == "pipe is a named pipe, not a file."
    folder = Path.cwd()
    os.chdir(root)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("sock")
    finally:
        os.chdir(folder)
    assert tools.read.call(path="sock").is_error


@pytest.mark.parametrize("path", ["a", "b", "a/x", "self", "folder/folder/folder/loop"])
def test_loops_of_links_are_refused(tools: Tools, root: Path, path: str) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "self").symlink_to("self")
    (root / "folder").symlink_to(".")
    (root / "loop").symlink_to("folder/loop")
    assert tools.read.call(path=path).is_error


def test_a_name_with_a_newline_is_read_and_shown_on_one_line(tools: Tools, root: Path) -> None:
    (root / "a\nb").write_text("x")
    result = tools.read.call(path="a\nb")
    assert (result.text, result.details.path) == ("x", r'"a\nb"')


def test_a_folder_swapped_for_a_link_after_the_check_is_not_followed(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "d").mkdir()
    (root / "d" / "f").write_text("inside")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("secret")
    from pi_notebook.tools._paths import Workspace

    find = Workspace.find

    def swap(self: Workspace, path: str, *, reading: bool = False) -> Path:
        found = find(self, path, reading=reading)
        (root / "d").rename(root / "old")
        (root / "d").symlink_to(outside)
        return found

    monkeypatch.setattr(Workspace, "find", swap)
    result = tools.read.call(path="d/f")
    assert result.is_error
    assert "secret" not in result.text


def test_no_permission_is_an_error(as_somebody_else: Any) -> None:
    folder, unprivileged = as_somebody_else
    (folder / "f").write_text("x")
    (folder / "f").chmod(0)
    tools = Tools(folder)
    tools.read.call(path="missing")  # imports done with rights
    with unprivileged():
        result = tools.read.call(path="f")
    assert result.is_error
    assert result.text == "f cannot be read: permission denied."


def test_an_abort_ends_a_long_scan(root: Path) -> None:
    import asyncio

    from pi_notebook.ai.abort import AbortController

    with (root / "huge.txt").open("wb") as file:
        file.write(b"text\n" * 2_000)
        file.truncate(1 << 40)
    controller = AbortController()
    read = Tools(root).read

    async def run() -> Any:
        task = asyncio.ensure_future(
            run_tool_call(
                ToolCall("1", "read", {"path": "huge.txt", "offset": 1 << 50}), [read], signal=controller.signal
            )
        )
        asyncio.get_running_loop().call_later(0.05, controller.abort)
        return await task

    assert asyncio.run(run()).is_error
