"""The side panel of the window: sliders drawn by us, hit by us; pure state and Pillow, no window."""

import math
from collections.abc import Sequence

import numpy as np

from taichi_sim.viz.caption import font

WIDTH = 250  # px
ROW = 40
TOP = 14
PAD = 16
PANEL = (246, 247, 249)
TRACK = (208, 213, 221)
ACCENT = (60, 118, 184)
TEXT = (46, 52, 64)
FAINT = (118, 126, 140)

HELP = (
    ("space", "run / pause"),
    (". or →", "one frame"),
    ("r", "reset"),
    ("+  −", "faster, slower"),
    ("drag", "turn (2-D: move)"),
    ("right drag", "move"),
    ("wheel", "zoom"),
    ("c", "first view again"),
    ("esc", "quit"),
)


class Panel:
    """Sliders one below the other, scrolled when there are more than fit.

    ``sliders``: (name, value, low, high) each; where 0 < low and high >= 100 low the slider is logarithmic.
    """

    def __init__(self, sliders: Sequence[tuple[str, float, float, float]], height: int) -> None:
        for name, value, low, high in sliders:
            if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(value)):
                raise ValueError(f"slider {name!r}: needs finite low < high and a value, got {low}, {high}, {value}")
        self.names = [s[0] for s in sliders]
        self.values = [float(s[1]) for s in sliders]
        self.first = list(self.values)
        self.ranges = [(float(s[2]), float(s[3])) for s in sliders]
        self.height = height
        self.scroll = 0
        self.held: int | None = None
        self._shown: tuple | None = None
        self._image = np.zeros((0, 0, 3), np.uint8)

    @property
    def rows(self) -> int:
        """Number of sliders that fit above the list of keys."""
        return max(1, (self.height - TOP - 18 * len(HELP) - 28) // ROW)

    def share(self, index: int) -> float:
        """Where the knob stands, 0..1."""
        low, high = self.ranges[index]
        value = min(max(self.values[index], low), high)
        if low > 0 and high >= 100 * low:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def value_at(self, index: int, x: float) -> float:
        """Value for a horizontal place (px in the panel)."""
        low, high = self.ranges[index]
        share = min(max((x - PAD) / (WIDTH - 2 * PAD), 0.0), 1.0)
        if low > 0 and high >= 100 * low:
            return low * (high / low) ** share
        return low + share * (high - low)

    def knob(self, index: int) -> tuple[float, float]:
        """Centre of a slider's knob (px in the panel), whether shown or not."""
        return PAD + self.share(index) * (WIDTH - 2 * PAD), TOP + (index - self.scroll) * ROW + 27.0

    def hit(self, x: float, y: float) -> int | None:
        """The slider at a place (px in the panel), or ``None``."""
        index = self.scroll + int((y - TOP) // ROW)
        shown = min(len(self.names), self.scroll + self.rows)
        return index if 0 <= x < WIDTH and self.scroll <= index < shown and y >= TOP else None

    def scrolled(self, rows: int) -> None:
        """Show sliders further down (positive) or up."""
        self.scroll = max(0, min(self.scroll + rows, len(self.names) - self.rows))

    def draw(self) -> np.ndarray:
        """The panel as (height, WIDTH, 3) uint8."""
        state = (tuple(self.values), self.scroll, self.held)
        if state == self._shown:
            return self._image
        from PIL import Image, ImageDraw

        s = 2  # drawn larger and reduced: smooth knobs
        image = Image.new("RGB", (WIDTH * s, self.height * s), PANEL)
        draw = ImageDraw.Draw(image)
        small, plain = font(11 * s), font(12 * s)
        left, right = PAD * s, (WIDTH - PAD) * s
        for index in range(self.scroll, min(len(self.names), self.scroll + self.rows)):
            x, y = (s * c for c in self.knob(index))
            number = f"{self.values[index]:.4g}"
            room = right - left - draw.textlength(number, font=plain) - 8 * s
            name = _tail(draw, self.names[index], plain, room)
            draw.text((left, y - 15 * s), name, font=plain, fill=TEXT, anchor="lm")
            draw.text((right, y - 15 * s), number, font=plain, fill=ACCENT, anchor="rm")
            draw.rounded_rectangle((left, y - 2 * s, right, y + 2 * s), 2 * s, fill=TRACK)
            draw.rounded_rectangle((left, y - 2 * s, max(x, left + s), y + 2 * s), 2 * s, fill=ACCENT)
            r = (7 if index == self.held else 6) * s
            draw.ellipse((x - r, y - r, x + r, y + r), fill=(255, 255, 255), outline=ACCENT, width=2 * s)
        bottom = self.height - 18 * len(HELP) - 8
        if len(self.names) > self.rows:
            last = min(len(self.names), self.scroll + self.rows)
            text = f"{self.scroll + 1}–{last} of {len(self.names)} · wheel for more"
            draw.text((left, (bottom - 12) * s), text, font=small, fill=FAINT, anchor="lm")
        for k, (key, what) in enumerate(HELP):
            y = (bottom + 18 * k + 9) * s
            draw.text((left, y), key, font=small, fill=TEXT, anchor="lm")
            draw.text((left + 74 * s, y), what, font=small, fill=FAINT, anchor="lm")
        image = image.reduce(s)
        self._image, self._shown = np.asarray(image), state
        return self._image


def _tail(draw, text: str, face, room: float) -> str:
    """``text`` cut from the left to fit: the end of a path says most."""
    if draw.textlength(text, font=face) <= room:
        return text
    while text and draw.textlength("…" + text, font=face) > room:
        text = text[1:]
    return "…" + text
