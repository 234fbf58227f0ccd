"""Text and small signs drawn over finished frames with Pillow."""

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np

from taichi_sim.viz.picture import COOL, IDLE, WARM

INK = (38, 43, 54)
PAPER = (255, 255, 255)


@cache
def font(size: int, bold: bool = False):
    """DejaVu Sans as matplotlib carries it, else Pillow's own; the same on every machine."""
    from PIL import ImageFont

    found = importlib.util.find_spec("matplotlib")
    for folder in (found.submodule_search_locations or []) if found else []:
        file = Path(folder) / "mpl-data" / "fonts" / "ttf" / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")
        if file.is_file():
            return ImageFont.truetype(str(file), size)
    return ImageFont.load_default(size)


def text_size(height: int) -> int:
    """Readable size of text (px) for a picture of this height."""
    return max(10, round(height / 34))


def head(height: int, caption: str) -> float:
    """Share of a picture's height that a caption covers."""
    size = text_size(height)
    lines = len(caption.splitlines())
    return (round(size * 1.4) * lines + max(3, size // 2)) / height if lines else 0.0


def plate(draw, box: tuple[float, float, float, float]) -> None:
    """A pale rounded plate that keeps text readable on anything."""
    draw.rounded_rectangle(box, radius=min(8, (box[3] - box[1]) / 3), fill=(*PAPER, 190))


def write(frame: np.ndarray, caption: str = "", legend: bool = False, note: str = "") -> np.ndarray:
    """A copy of ``frame`` (H, W, 3) uint8 with a caption top left, an activation scale top right, a note below.

    The first line of the caption is bold; lines too long for the frame are cut with an ellipsis.
    """
    if not (caption or legend or note):
        return frame
    from PIL import Image, ImageDraw

    rows, cols = frame.shape[:2]
    image = Image.fromarray(frame)
    draw = ImageDraw.Draw(image, "RGBA")
    size = text_size(rows)
    pad, edge = max(3, size // 2), max(4, size * 2 // 3)
    right = cols - edge
    if legend and cols >= 16 * size:
        right = _legend(draw, cols, edge, size, pad)
    if caption:
        lines = caption.splitlines()
        fonts = [font(size + max(1, size // 6), True)] + [font(size)] * (len(lines) - 1)
        lines = [_fit(draw, line, f, right - edge - 2 * pad) for line, f in zip(lines, fonts, strict=True)]
        width = max(draw.textlength(line, font=f) for line, f in zip(lines, fonts, strict=True))
        step = round(size * 1.4)
        plate(draw, (edge, edge, edge + width + 2 * pad, edge + step * len(lines) + pad))
        for k, (line, f) in enumerate(zip(lines, fonts, strict=True)):
            draw.text((edge + pad, edge + pad // 2 + step * (k + 0.5)), line, font=f, fill=INK, anchor="lm")
    if note:
        small = font(max(9, round(size * 0.78)))
        draw.text((edge, rows - edge), note, font=small, fill=(*INK, 170), anchor="ls")
    return np.asarray(image)


def _fit(draw, line: str, face, width: float) -> str:
    if draw.textlength(line, font=face) <= width:
        return line
    while line and draw.textlength(line + "…", font=face) > width:
        line = line[:-1]
    return line.rstrip() + "…"


def _legend(draw, cols: int, edge: int, size: int, pad: int) -> int:
    """Colour scale of the activation in the top right corner; returns its left side (px)."""
    small = font(max(9, round(size * 0.8)))
    bar = 7 * size
    label = "activation"
    width = max(bar, round(draw.textlength(label, font=small))) + 2 * pad + 2 * size
    x0, y0 = cols - edge - width, edge
    plate(draw, (x0, y0, x0 + width, y0 + round(2.6 * size) + pad))
    middle = x0 + width / 2
    draw.text((middle, y0 + pad / 2 + size * 0.6), label, font=small, fill=INK, anchor="mm")
    left, top, high = round(middle - bar / 2), y0 + round(1.45 * size), max(4, size // 2)
    for k in range(bar):
        a = 2.0 * k / max(bar - 1, 1) - 1.0
        end, w = (WARM if a > 0 else COOL), abs(a) ** 0.75
        color = tuple(round(255 * ((1 - w) * i**2.2 + w * e**2.2) ** (1 / 2.2)) for i, e in zip(IDLE, end, strict=True))
        draw.line((left + k, top, left + k, top + high), fill=color)
    for text, x in (("−1", left), ("0", round(middle)), ("1", left + bar)):
        draw.text((x, top + high + size * 0.55), text, font=small, fill=INK, anchor="mm")
    return x0
