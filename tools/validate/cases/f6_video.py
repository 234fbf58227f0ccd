"""F6: a video of 37 frames of odd size, with a marker in the top right corner."""

import tempfile
from pathlib import Path

import imageio.v3 as imageio
import numpy as np

from taichi_sim.io.video import write_video
from validate.case import Case, Report

WIDTH, HEIGHT, FRAMES = 301, 203, 37


def frames() -> list[np.ndarray]:
    """Dark grey, changing a little, with a white marker of 12 x 12 pixels."""
    pictures = []
    for k in range(FRAMES):
        picture = np.full((HEIGHT, WIDTH, 3), 40 + k, np.uint8)
        picture[:12, -12:] = 255
        pictures.append(picture)
    return pictures


def run(quick: bool) -> Report:
    report = Report("F6")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_video(folder / "a.mp4", frames(), 25)
        seen = imageio.imread(folder / "a.mp4")
        report.row("frames", FRAMES, len(seen), 0.0)
        height, width = seen[0].shape[:2]
        report.row("width, pixels (padded to even)", 302, width, 1.0)
        report.row("height, pixels (padded to even)", 204, height, 1.0)
        corner, rest = seen[5][2:8, WIDTH - 9 : WIDTH - 3].mean(), seen[5][HEIGHT // 2 :].mean()
        report.at_least("brightness of the corner with the marker", 200.0, corner)
        report.row("brightness elsewhere", 45.0, rest, 10.0)
        refused = 0.0
        try:
            write_video(folder / "empty.mp4", [], 25)
        except ValueError:
            refused = 1.0
        report.row("no frames refused", 1.0, refused, 0.0)
        report.row("files left behind by that", 0.0, float(len(list(folder.glob("empty*")))), 0.0)
    return report


case = Case("F6", "video of an odd size", run)
