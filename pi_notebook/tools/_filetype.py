"""What a file is, from its first bytes."""

from __future__ import annotations

import codecs
import mimetypes

SNIFF = 8 * 1024

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"PAR1", "application/vnd.apache.parquet"),
    (0, b"ARROW1", "application/vnd.apache.arrow.file"),
    (0, b"FEA1", "application/vnd.apache.arrow.file"),
    (0, b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"\x93NUMPY", "application/x-npy"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (4, b"ftyp", "video/mp4"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\x1aE\xdf\xa3", "video/x-matroska"),
    (0, b"wOF", "font/woff"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\b\x1b")


def image_type(head: bytes) -> str:
    """The MIME type if these are the first bytes of an image that models can be shown; else empty."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"BM") and len(head) >= 26 and int.from_bytes(head[14:18], "little") in range(12, 125):
        return "image/bmp"
    return ""


def utf16(head: bytes) -> str:
    """`utf-16` if the text begins with that encoding's mark; else empty."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not head.startswith(codecs.BOM_UTF32_LE):
        return "utf-16"
    return ""


def is_binary(head: bytes) -> bool:
    """Whether the first bytes (up to `SNIFF`) are no text: a NUL, or more than a tenth of them control characters."""
    head = head[:SNIFF]
    if b"\0" in head:
        return True
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    return controls * 10 > len(head) or (head.startswith(b"%PDF-"))


def binary_type(head: bytes, name: str) -> str:
    """The MIME type of a binary file; the name decides where the bytes say little (`.xlsx` is a zip)."""
    guessed, encoding = mimetypes.guess_type(name)
    for offset, magic, mime_type in _MAGIC:
        if head[offset : offset + len(magic)] == magic:
            wraps = mime_type in ("application/zip", "application/x-ole-storage", "video/mp4")
            return guessed if wraps and guessed and not encoding else mime_type
    return guessed or "application/octet-stream"
