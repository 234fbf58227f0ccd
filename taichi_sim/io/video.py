"""Frames into a video file, a GIF or a folder of PNGs, with what goes wrong on the way caught before it does.

Frames are (height, width, 3), first row on top: uint8, or floats 0..1.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from taichi_sim.core.memory import size_text
from taichi_sim.io.atomic import WriteError, replacing, writing
from taichi_sim.io.gif import GifWriter

ALLOWED = "NAME.mp4, NAME.gif, NAME-%04d.png, or a folder name without an ending (frames as 0000.png, 0001.png, …)"
SIGNATURE = "taichi-sim"
FASTEST_GIF = 50.0  # frames/s; viewers slow down anything faster


class VideoInfo(NamedTuple):
    """What was written: the path asked for, number of frames, frames/s, width and height px as stored."""

    path: Path
    frames: int
    fps: float
    width: int
    height: int


def check_video_path(path: str | os.PathLike[str]) -> str:
    """What :func:`write_video` would make of a path: ``"mp4"``, ``"gif"`` or ``"png"``.

    Raises ``ValueError`` if nothing, and for a folder with pictures of somebody else's that frames would replace.

    For refusing a mistyped name before a long run.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".mp4", ".gif"):
        if path.is_dir():
            raise ValueError(f"video {path}: is a folder, expected the name of a file")
        return ending[1:]
    pattern = ending == ".png" and re.fullmatch(r"[^%]*%0\dd[^%]*", path.name)
    if pattern or (ending == "" and path.name and "%" not in path.name and (path.is_dir() or not path.exists())):
        _frames_of(*_sequence(path))
        return "png"
    raise ValueError(f"video {path}: cannot be written; allowed: {ALLOWED}")


def write_video(path: str | os.PathLike[str], frames: Iterable[np.ndarray], fps: float = 30.0) -> VideoInfo:
    """Write frames as mp4 (H.264), GIF or PNG sequence, chosen by the ending of ``path``; see :data:`ALLOWED`.

    Nothing is written, and an older file stays, unless every frame is good: the video goes to a temporary name, its
    frames are counted again there, then it is renamed. mp4 has even sizes only: an odd width or height grows by one
    pixel, right or below, that repeats its neighbour. GIF keeps equal frames as frames; above 50 frames/s, which
    viewers do not play, frames are left out evenly so that the duration stays. In a folder that already holds such a
    sequence the old frames go.

    Raises ``ValueError`` for an unknown ending, no frames, a frame that is not finite, out of range, of another size
    than the first or not (H, W, 3), or ``fps`` not > 0; ``OSError`` in one line if the file cannot be written;
    ``RuntimeError`` if the encoder lost frames.
    """
    kind = check_video_path(path)
    path = Path(path)
    fps = float(fps)
    if not (np.isfinite(fps) and fps > 0):
        raise ValueError(f"video {path}: fps must be > 0, got {fps}")
    good = _checked(path, frames)
    first = next(good, None)
    if first is None:
        raise ValueError(f"video {path}: there are no frames to write")
    everything = _chain(first, good)
    if kind == "mp4":
        return _write_mp4(path, everything, fps, first.shape)
    if kind == "gif":
        return _write_gif(path, everything, fps, first.shape)
    return _write_pngs(path, everything, fps, first.shape)


def as_bytes(frame: np.ndarray, where: str) -> np.ndarray:
    """The frame as uint8 (H, W, 3). Raises ``ValueError``, starting with ``where``, for what is not a picture."""
    frame = np.asarray(frame)
    if frame.ndim != 3 or frame.shape[2] != 3 or 0 in frame.shape:
        raise ValueError(f"{where}: must have shape (height, width, 3), got {frame.shape}")
    if frame.dtype == np.uint8:
        return np.ascontiguousarray(frame)
    if frame.dtype.kind != "f":
        raise ValueError(f"{where}: must be uint8, or floats from 0 to 1, got {frame.dtype}")
    if not np.isfinite(frame).all():
        bad = np.argwhere(~np.isfinite(frame))[0]
        raise ValueError(f"{where}: not finite at row {bad[0]}, column {bad[1]}")
    if frame.min() < -1e-3 or frame.max() > 1 + 1e-3:
        raise ValueError(f"{where}: floats must be from 0 to 1, got {frame.min():g} to {frame.max():g}")
    return np.rint(np.clip(frame, 0.0, 1.0) * 255.0).astype(np.uint8)


def _checked(path: Path, frames: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    shape = None
    for k, frame in enumerate(frames):
        frame = as_bytes(frame, f"video {path}: frame {k}")
        shape = shape or frame.shape
        if frame.shape != shape:
            raise ValueError(
                f"video {path}: frame {k} is {frame.shape[1]}x{frame.shape[0]}, the first one {shape[1]}x{shape[0]}"
            )
        yield frame


def _chain(first: np.ndarray, rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    yield first
    yield from rest


def _expect(path: Path, wrote: int, found: int | None) -> None:
    if wrote != found:
        raise RuntimeError(f"video {path}: {wrote} frames were written but {found} are in the file; it was not kept")


def _write_mp4(path: Path, frames: Iterator[np.ndarray], fps: float, shape: tuple[int, ...]) -> VideoInfo:
    import imageio_ffmpeg

    height, width = shape[0] + shape[0] % 2, shape[1] + shape[1] % 2
    colours = "scale=out_color_matrix=bt709:out_range=tv"
    tags = ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
    count = 0
    with replacing(path) as temporary:
        writer = imageio_ffmpeg.write_frames(
            str(temporary),
            (width, height),
            fps=fps,  # type: ignore[arg-type]
            codec="libx264",
            quality=None,  # type: ignore[arg-type]
            macro_block_size=2,
            pix_fmt_out="yuv420p",
            ffmpeg_log_level="quiet",  # it writes to our standard error, and many lines
            output_params=["-crf", "17", "-preset", "medium", "-vf", colours, *tags, "-movflags", "+faststart"],
        )
        writer.send(None)
        try:
            for frame in frames:
                grown = np.pad(frame, ((0, height - shape[0]), (0, width - shape[1]), (0, 0)), mode="edge")
                try:
                    writer.send(np.ascontiguousarray(grown))
                except OSError:
                    raise _stopped(path) from None
                count += 1
        finally:
            writer.close()
        try:
            found = imageio_ffmpeg.count_frames_and_secs(str(temporary))[0]
        except RuntimeError:  # it failed at the last frames
            raise _stopped(path) from None
        _expect(path, count, found)
    return VideoInfo(path, count, fps, width, height)


def _stopped(path: Path) -> WriteError:
    free = shutil.disk_usage(path.absolute().parent).free
    return WriteError(f"video {path}: cannot be written: ffmpeg stopped ({size_text(free)} are free there)")


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float, shape: tuple[int, ...]) -> VideoInfo:
    from PIL import Image

    shown = min(fps, FASTEST_GIF)
    with replacing(path) as temporary:
        with open(temporary, "xb") as file:
            writer = GifWriter(file, shape[1], shape[0], shown)
            for k, frame in enumerate(frames):
                if writer.frames <= k * shown / fps:
                    writer.add(frame)
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        with Image.open(temporary) as image:
            _expect(path, writer.frames, getattr(image, "n_frames", 1))
    return VideoInfo(path, writer.frames, shown, shape[1], shape[0])


def _write_pngs(path: Path, frames: Iterator[np.ndarray], fps: float, shape: tuple[int, ...]) -> VideoInfo:
    folder, name = _sequence(path)
    _frames_of(folder, name)
    waiting = folder / f".frames.{os.getpid()}-{os.urandom(4).hex()}"
    with writing(folder, waiting):
        waiting.mkdir(parents=True)
    count = 0
    try:
        for frame in frames:
            file = waiting / (name % count)
            with writing(folder / file.name, file):
                file.write_bytes(_png(frame))
            count += 1
        _expect(path, count, len(list(waiting.iterdir())))
        for file in _frames_of(folder, name):
            file.unlink()
        for k in range(count):
            os.replace(waiting / (name % k), folder / (name % k))
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
    return VideoInfo(path, count, fps, shape[1], shape[0])


def _sequence(path: Path) -> tuple[Path, str]:
    """Folder of a sequence, and the pattern of its names."""
    return (path.parent, path.name) if path.suffix else (path, "%04d.png")


def _frames_of(folder: Path, name: str) -> list[Path]:
    """Frames an earlier sequence of ours left in ``folder``. Raises ``ValueError`` if somebody else's files have such
    names: they would be replaced."""
    before, digits, after = re.split(r"%0(\d)d", name)
    alike = re.compile(re.escape(before) + r"\d{" + digits + r",}" + re.escape(after))
    found = sorted(file for file in folder.iterdir() if alike.fullmatch(file.name)) if folder.is_dir() else []
    for file in found:
        if not _is_ours(file):
            raise ValueError(f"video {folder}: holds {file.name}, which was not written here; choose another folder")
    return found


def _is_ours(file: Path) -> bool:
    """Whether we signed a picture (every PNG of ours says so in its header)."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            return image.info.get("Software") == SIGNATURE
    except OSError:
        return False


def _png(frame: np.ndarray) -> bytes:
    import imageio.v3
    from PIL.PngImagePlugin import PngInfo

    signed = PngInfo()
    signed.add_text("Software", SIGNATURE)
    return imageio.v3.imwrite("<bytes>", frame, extension=".png", plugin="pillow", compress_level=6, pnginfo=signed)
