"""Figures and images of the usual libraries as PNG for a model. No library is imported that is not loaded already."""

from __future__ import annotations

import base64
import io
import sys
import threading
from collections.abc import Iterable
from typing import Any

from ..ai.messages import ImageContent

MAX_SIDE = 1568
"""Pixels; providers scale larger images down to about this."""
_DPI = 100.0
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_rendering = threading.Lock()


class NoPicture(Exception):
    """A figure that cannot be drawn here; the text says what to do."""


def picture(value: Any) -> ImageContent | None:
    """The image for a figure, an image object or the bytes of an image file; None if `value` is none of these.

    Raises:
        NoPicture: If it is one and cannot be drawn.
    """
    if isinstance(value, bytes):
        kind = image_type(value)
        return ImageContent(_base64(value), kind) if kind else None
    if (figure := matplotlib_figure(value)) is not None:
        return ImageContent(_base64(_draw(figure)), "image/png")
    pil = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(value, pil.Image):
        return ImageContent(_base64(_pil_png(value)), "image/png")
    library = type(value).__module__.partition(".")[0]
    if library == "plotly" and hasattr(type(value), "to_image"):
        return _exported(value, "plotly", lambda: value.to_image(format="png"), "kaleido")
    if library == "altair" and hasattr(type(value), "to_dict") and hasattr(type(value), "save"):
        return _exported(value, "altair", lambda: _altair_png(value), "vl-convert-python")
    return None


def is_picture(value: Any) -> bool:
    """Whether `picture` would draw `value`, found out without drawing."""
    if isinstance(value, bytes):
        return image_type(value) is not None
    pil = sys.modules.get("PIL.Image")
    library = type(value).__module__.partition(".")[0]
    return (
        matplotlib_figure(value) is not None
        or (pil is not None and isinstance(value, pil.Image))
        or (library == "plotly" and hasattr(type(value), "to_image"))
        or (library == "altair" and hasattr(type(value), "to_dict") and hasattr(type(value), "save"))
    )


def image_type(data: bytes) -> str | None:
    """The mime type of an image file that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def matplotlib_figure(value: Any) -> Any:
    """The figure behind a matplotlib figure, axes or other artist, a seaborn grid, or a list of artists."""
    module = sys.modules.get("matplotlib.figure")
    artists = sys.modules.get("matplotlib.artist")
    if module is None or artists is None or isinstance(value, str | bytes | dict | type):
        return None
    if isinstance(value, module.FigureBase):
        return value.get_figure(root=True) if isinstance(value, module.SubFigure) else value
    if isinstance(value, artists.Artist):
        return matplotlib_figure(value.get_figure())
    if type(value).__module__.startswith("seaborn.axisgrid"):
        return value.figure
    if isinstance(value, list | tuple) and value and all(isinstance(item, artists.Artist) for item in value):
        return _shared_figure(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype == object and value.size:
        items = value.ravel().tolist()
        return _shared_figure(items) if all(isinstance(item, artists.Artist) for item in items) else None
    return None


def _shared_figure(artists: Iterable[Any]) -> Any:
    figures = {id(figure): figure for artist in artists if (figure := artist.get_figure()) is not None}
    return matplotlib_figure(next(iter(figures.values()))) if len(figures) == 1 else None


def _draw(figure: Any) -> bytes:
    buffer = io.BytesIO()
    longest = max(figure.get_size_inches())
    with _rendering:
        figure.savefig(buffer, format="png", dpi=min(_DPI, MAX_SIDE / max(longest, 0.1)), bbox_inches="tight")
    return buffer.getvalue()


def _pil_png(image: Any) -> bytes:
    buffer = io.BytesIO()
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
        image = image.convert("RGB")
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def _altair_png(chart: Any) -> bytes:
    buffer = io.BytesIO()
    chart.save(buffer, format="png")
    return buffer.getvalue()


def _exported(value: Any, library: str, export: Any, needs: str) -> ImageContent:
    try:
        return ImageContent(_base64(_twice(export)), "image/png")
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise NoPicture(
            f"{library} {type(value).__name__}; no picture of it could be made "
            f"({type(error).__name__}: {reason}; it needs the package {needs})"
        ) from error


def _twice(export: Any) -> bytes:
    """kaleido's page may be asked before its script is there, on a machine that is busy; the next one is not."""
    try:
        data: bytes = export()
    except Exception as error:
        if type(error).__name__ != "JavascriptError":
            raise
        data = export()
    return data


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
