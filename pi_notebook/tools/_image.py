"""Images made small enough for models."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

from ..agent._cut import readable_size
from ..ai.messages import ImageContent
from ..errors import ToolError

MAX_SIDE = 2_000
"""Pixels; Anthropic refuses more where a request holds many images."""
MAX_BASE64 = 4_500_000
"""Characters; Anthropic takes 5 MB."""
MAX_PIXELS = 89_000_000
"""Pillow itself warns above."""
MAX_FILE = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shown:
    """An image as a model gets it. `original` and `shown` are (width, height) in pixels; `note` says what was done."""

    content: ImageContent
    original: tuple[int, int]
    shown: tuple[int, int]
    note: str


def image_content(data: bytes, mime_type: str, name: str) -> Shown:
    """An image file's bytes as content: as they are if they fit the limits, else scaled and encoded anew.

    GIF and BMP become PNG, since not every provider takes them; of an animation the first picture is shown.

    Raises:
        ToolError: The image is broken, or too large to decode safely.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=[mime_type.removeprefix("image/")]) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise ToolError(
                    f"{name} has {width} x {height} pixels, too many to decode. Make a smaller copy with python first."
                )
            frames = getattr(image, "n_frames", 1)
            turned = image.getexif().get(0x0112, 1) != 1
            fits = max(width, height) <= MAX_SIDE and len(data) * 4 // 3 + 4 <= MAX_BASE64
            if fits and not turned and mime_type in ("image/png", "image/jpeg", "image/webp") and frames == 1:
                image.load()
                encoded = base64.b64encode(data).decode("ascii")
                return Shown(ImageContent(encoded, mime_type), image.size, image.size, "")
            upright = ImageOps.exif_transpose(image)
            original = upright.size
            encoded, shown_type, shown = _encode(upright, lossy=mime_type == "image/jpeg")
    except ToolError:
        raise
    except Exception as error:  # Pillow raises whatever its decoders do: OSError, SyntaxError, struct.error, ...
        # The text of the first names the buffer that it was handed.
        reason = "it is damaged or cut off" if isinstance(error, UnidentifiedImageError) else str(error)
        raise ToolError(f"{name} begins like {mime_type} but cannot be decoded: {reason}.") from error
    notes = []
    if shown != original:
        notes.append(
            f"shown at {shown[0]} x {shown[1]}; multiply coordinates by {original[0] / shown[0]:.2f} for the file's own"
        )
    if frames > 1:
        notes.append(f"the first of {frames} pictures")
    return Shown(ImageContent(encoded, shown_type), original, shown, "; ".join(notes))


def _encode(image: Any, *, lossy: bool) -> tuple[str, str, tuple[int, int]]:
    """Base64, MIME type and size of the largest version within the limits."""
    from PIL import Image

    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    if image.mode not in ("1", "L", "RGB", "RGBA", "LA") or "transparency" in image.info:
        image = image.convert("RGBA" if has_alpha else "RGB")
    side = MAX_SIDE
    while True:
        scaled = image
        if max(image.size) > side:
            factor = side / max(image.size)
            scaled = image.resize(
                (max(1, round(image.width * factor)), max(1, round(image.height * factor))), Image.Resampling.LANCZOS
            )
        attempts: list[tuple[str, str, dict[str, Any]]] = [] if lossy else [("PNG", "image/png", {"optimize": False})]
        if not has_alpha:
            attempts += [("JPEG", "image/jpeg", {"quality": quality}) for quality in (85, 60)]
        for form, mime_type, options in attempts:
            out = io.BytesIO()
            picture = scaled.convert("RGB") if form == "JPEG" and scaled.mode not in ("L", "RGB") else scaled
            picture.save(out, form, **options)
            if out.tell() * 4 // 3 + 4 <= MAX_BASE64:
                return base64.b64encode(out.getvalue()).decode("ascii"), mime_type, scaled.size
        if side < 64:
            raise ToolError(f"the image cannot be made smaller than {readable_size(MAX_BASE64)}")
        side = side * 3 // 4
