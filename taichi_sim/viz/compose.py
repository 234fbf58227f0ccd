"""Putting frames side by side, for before/after videos."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from taichi_sim.viz.caption import INK, PAPER, font, text_size


def side_by_side(
    columns: Sequence[Iterable[np.ndarray]], labels: Sequence[str] = (), gap: int = 4
) -> Iterator[np.ndarray]:
    """Frames of several videos next to each other, each under its label.

    ``columns``: one iterable of frames (H, W, 3) uint8 per column, all of one height; a column that ends first holds
    its last frame until the longest ends. ``labels``: one line per column, or none; ``gap`` px between columns.
    Yields frames (H, sum of widths + gaps, 3) uint8. Raises ``ValueError`` if counts or heights do not fit, or a column
    is empty.
    """
    if not columns:
        raise ValueError("side_by_side: at least one column of frames is needed")
    if labels and len(labels) != len(columns):
        raise ValueError(f"side_by_side: {len(columns)} columns but {len(labels)} labels")
    running = [iter(column) for column in columns]
    last: list[np.ndarray | None] = [None] * len(columns)
    tags: list[np.ndarray] = []
    while True:
        moved = False
        for k, frames in enumerate(running):
            frame = next(frames, None)
            if frame is not None:
                last[k] = frame
                moved = True
        if not moved:
            return
        shown = []
        for k, frame in enumerate(last):
            if frame is None:
                raise ValueError(f"side_by_side: column {k} has no frames")
            if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
                raise ValueError(f"side_by_side: column {k}: frames must be (H, W, 3) uint8, got {frame.shape}")
            if frame.shape[0] != shown[0].shape[0] if shown else False:
                raise ValueError(f"side_by_side: column {k} is {frame.shape[0]} px high, column 0 {shown[0].shape[0]}")
            shown.append(frame)
        if labels and not tags:
            tags = [_tag(label, frame) for label, frame in zip(labels, shown, strict=True)]
        parts: list[np.ndarray] = []
        for k, frame in enumerate(shown):
            if k:
                parts.append(np.full((frame.shape[0], gap, 3), 255, np.uint8))
            if tags:
                frame = frame.copy()
                tag = tags[k]
                row, col = frame.shape[0] - tag.shape[0], (frame.shape[1] - tag.shape[1]) // 2
                frame[row:, col : col + tag.shape[1]] = tag
            parts.append(frame)
        yield np.concatenate(parts, axis=1)


def _tag(label: str, frame: np.ndarray) -> np.ndarray:
    """A small sign with the label, (h, w, 3) uint8, no larger than the frame."""
    from PIL import Image, ImageDraw

    size = text_size(frame.shape[0])
    face = font(size, True)
    width = int(face.getlength(label)) + 2 * size
    image = Image.new("RGB", (width, round(1.9 * size)), INK)
    ImageDraw.Draw(image).text((width / 2, 0.95 * size), label, font=face, fill=PAPER, anchor="mm")
    return np.asarray(image)[: frame.shape[0], : frame.shape[1]]
