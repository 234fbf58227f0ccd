"""Animated GIF, frame by frame. Pillow merges equal frames into one; here every frame stays a frame.

Format: GIF89a specification, CompuServe 1990. Pillow compresses the single images; the animation around them is ours.
"""

import io
import struct
from typing import BinaryIO

import numpy as np


class GifWriter:
    """Writes a looping GIF of one size to an open binary file. ``frames`` counts what was written.

    Only the rectangle that changed since the frame before is stored, with up to 256 colours of its own. Times are
    hundredths of a second, rounded so that they add up to ``frames / fps``.
    """

    def __init__(self, file: BinaryIO, width: int, height: int, fps: float) -> None:
        self.file, self.width, self.height, self.fps = file, width, height, fps
        self.frames = 0
        self._last: np.ndarray | None = None
        file.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0x70, 0, 0))
        file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")  # for ever

    def add(self, frame: np.ndarray) -> None:
        """Add a frame (height, width, 3) uint8."""
        top, bottom, left, right = 0, self.height, 0, self.width
        if self._last is not None:
            changed = (frame != self._last).any(axis=2)
            rows, cols = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
            if len(rows):
                top, bottom, left, right = rows[0], rows[-1] + 1, cols[0], cols[-1] + 1
            else:
                bottom = right = 1  # nothing changed: one pixel, again
        start, end = (round(100 * k / self.fps) for k in (self.frames, self.frames + 1))
        table, codes = _image_data(frame[top:bottom, left:right])
        size = (len(table) // 3).bit_length() - 2
        self.file.write(struct.pack("<BBBBHBB", 0x21, 0xF9, 4, 0x04, max(end - start, 2), 0, 0))
        self.file.write(struct.pack("<BHHHHB", 0x2C, left, top, right - left, bottom - top, 0x80 | size))
        self.file.write(table + codes)
        self._last = frame.copy()
        self.frames += 1

    def close(self) -> None:
        """Write the end of the animation; the file stays open."""
        self.file.write(b"\x3b")


def _image_data(image: np.ndarray) -> tuple[bytes, bytes]:
    """Colour table and compressed pixels of one image, taken out of a GIF that Pillow writes."""
    from PIL import Image

    quantized = Image.fromarray(np.ascontiguousarray(image)).quantize(256, method=Image.Quantize.MEDIANCUT)
    buffer = io.BytesIO()
    quantized.save(buffer, "GIF", interlace=False)
    data = buffer.getvalue()
    at = 13
    table = b""
    if data[10] & 0x80:
        size = 3 << ((data[10] & 7) + 1)
        table, at = data[at : at + size], at + size
    while data[at] == 0x21:  # extensions
        at = _after_blocks(data, at + 2)
    flags = data[at + 9]
    at += 10
    if flags & 0x80:
        size = 3 << ((flags & 7) + 1)
        table, at = data[at : at + size], at + size
    return table, data[at : _after_blocks(data, at + 1)]


def _after_blocks(data: bytes, at: int) -> int:
    """Place after a run of length-prefixed blocks that ends with an empty one."""
    while data[at]:
        at += data[at] + 1
    return at + 1
