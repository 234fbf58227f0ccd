"""Rollouts as data other tools read: one ``.npz``, or a point cloud a frame as ``.ply`` or ``.csv``.

``.npz``, format 1 (``numpy.load``, no pickles), sizes F frames, n particles in body order, dim 2 or 3, A actuators:

| key | type, shape | |
|---|---|---|
| ``format`` | int, () | 1 |
| ``times`` | f8, (F + 1,) | s; the first is the start |
| ``position`` | f4, (F + 1, n, dim) | m |
| ``velocity`` | f4, (F + 1, n, dim) | m/s; only where recorded |
| ``activation`` | f4, (F, A) | command of each actuator, constant within a frame |
| ``actuators`` | str, (A,) | names |
| ``bodies`` | str, (B,) | names |
| ``body_start`` | i8, (B + 1,) | body k is particles ``body_start[k]:body_start[k + 1]`` |
| ``colors`` | f4, (n, 3) | sRGB 0..1 |
| ``lower``, ``upper`` | f8, (dim,) | walls of the domain, m; only where known |
| ``scene`` | str, () | name |
"""

import csv
import io
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from taichi_sim.io.atomic import replacing, write_atomic

FORMAT = 1


@dataclass
class Rollout:
    """Every frame of one environment.

    times (F + 1,) s · position (F + 1, n, dim) m, f32, body order · bodies: name → slice of the particles, in order
    and without gaps · activation (F, A) · actuators: A names · velocity like position, m/s, or ``None`` · colors
    (n, 3) sRGB or ``None`` · lower, upper (dim,) m or ``None`` · scene: its name. Raises ``ValueError`` on arrays that
    do not fit each other.
    """

    times: np.ndarray
    position: np.ndarray
    bodies: Mapping[str, slice]
    activation: np.ndarray | None = None
    actuators: Sequence[str] = ()
    velocity: np.ndarray | None = None
    colors: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    scene: str = ""
    starts: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.times = np.asarray(self.times, np.float64)
        self.position = np.asarray(self.position, np.float32)
        shape = self.position.shape
        if len(shape) != 3 or shape[2] not in (2, 3) or self.times.shape != shape[:1] or not shape[0]:
            raise ValueError(f"rollout: position {shape} must be (times, particles, 2 or 3), times {self.times.shape}")
        starts = [0]
        for name, part in self.bodies.items():
            first, last, step = part.indices(shape[1])
            if first != starts[-1] or step != 1:
                raise ValueError(f"rollout: body {name!r} must start at particle {starts[-1]}, got {part}")
            starts.append(last)
        if starts[-1] != shape[1]:
            raise ValueError(f"rollout: bodies hold {starts[-1]} particles, position has {shape[1]}")
        self.starts = np.asarray(starts, np.int64)
        if self.activation is None:
            self.activation = np.zeros((shape[0] - 1, len(self.actuators)), np.float32)
        self.activation = np.asarray(self.activation, np.float32)
        for name, array, wanted in (
            ("activation", self.activation, (shape[0] - 1, len(self.actuators))),
            ("velocity", self.velocity, shape),
            ("colors", self.colors, (shape[1], 3)),
            ("lower", self.lower, shape[2:]),
            ("upper", self.upper, shape[2:]),
        ):
            if array is not None and np.shape(array) != wanted:
                raise ValueError(f"rollout: {name} must have shape {wanted}, got {np.shape(array)}")

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.position.shape[2]


def write_rollout(path: str | os.PathLike[str], rollout: Rollout, frames: str | None = None) -> Path:
    """Write a rollout; returns the path.

    ``path`` ends in ``.npz`` (see this module), or is a folder for one file a frame: ``frames`` says ``"ply"``
    (binary) or ``"csv"``, files ``0000.ply`` … with the start as the first; the folder's older frames of that kind go.
    Raises ``ValueError`` for any other ending or kind.
    """
    path = Path(path)
    if path.suffix.lower() == ".npz" and frames in (None, "npz"):
        return _write_npz(path, rollout)
    if not path.suffix and frames in ("ply", "csv"):
        return _write_frames(path, rollout, frames)
    raise ValueError(f"rollout {path}: allowed: NAME.npz, or a folder with frames = 'ply' or 'csv', got {frames!r}")


def read_rollout(path: str | os.PathLike[str]) -> Rollout:
    """Read a ``.npz`` written by :func:`write_rollout`. Raises ``ValueError`` if it is something else."""
    if not zipfile.is_zipfile(path):  # also when there is no such file
        raise ValueError(f"rollout {path}: there is no such file, or it is not a rollout")
    try:
        with np.load(path, allow_pickle=False) as data:
            if int(data["format"]) != FORMAT:
                raise ValueError(f"rollout {path}: format {int(data['format'])} is not known, expected {FORMAT}")
            starts = data["body_start"]
            bodies = {
                str(n): slice(int(a), int(b)) for n, a, b in zip(data["bodies"], starts[:-1], starts[1:], strict=True)
            }
            more = {key: data[key] for key in ("velocity", "colors", "lower", "upper") if key in data}
            actuators = [str(name) for name in data["actuators"]]
            scene = str(data["scene"])
            return Rollout(data["times"], data["position"], bodies, data["activation"], actuators, scene=scene, **more)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"rollout {path}: is not a rollout file ({error})") from error


def _write_npz(path: Path, rollout: Rollout) -> Path:
    arrays = {
        "format": np.int64(FORMAT),
        "times": rollout.times,
        "position": rollout.position,
        "activation": rollout.activation,
        "actuators": np.asarray(list(rollout.actuators), dtype=np.str_),
        "bodies": np.asarray(list(rollout.bodies), dtype=np.str_),
        "body_start": rollout.starts,
        "scene": np.asarray(rollout.scene, dtype=np.str_),
    }
    for name, kind in (("velocity", np.float32), ("colors", np.float32), ("lower", np.float64), ("upper", np.float64)):
        if getattr(rollout, name) is not None:
            arrays[name] = np.asarray(getattr(rollout, name), kind)
    with replacing(path) as temporary:
        with open(temporary, "xb") as file:
            np.savez_compressed(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
    return path


def _write_frames(folder: Path, rollout: Rollout, kind: str) -> Path:
    if folder.is_file():
        raise ValueError(f"rollout {folder}: is a file, expected the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    waiting = folder / f".frames.{os.getpid()}-{os.urandom(4).hex()}"
    waiting.mkdir()
    body = np.repeat(np.arange(len(rollout.bodies)), np.diff(rollout.starts))
    make = _ply if kind == "ply" else _csv
    count = len(rollout.times)
    try:
        for k in range(count):
            write_atomic(waiting / f"{k:04d}.{kind}", make(rollout, k, body))
        for file in folder.glob(f"*.{kind}"):
            if file.stem.isdigit():
                file.unlink()
        for k in range(count):
            os.replace(waiting / f"{k:04d}.{kind}", folder / f"{k:04d}.{kind}")
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
    return folder


def _ply(rollout: Rollout, frame: int, body: np.ndarray) -> bytes:
    """Binary little-endian PLY: x y z (z is 0 in 2-D), red green blue, body (index in the header's list)."""
    n = len(body)
    fields = [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("red", "u1"), ("green", "u1"), ("blue", "u1"), ("body", "<i4")]
    points = np.zeros(n, dtype=fields)
    for axis, name in zip(range(rollout.dim), "xyz", strict=False):
        points[name] = rollout.position[frame, :, axis]
    colors = np.full((n, 3), 0.7) if rollout.colors is None else np.asarray(rollout.colors)
    for c, name in enumerate(("red", "green", "blue")):
        points[name] = np.rint(255 * np.clip(colors[:, c], 0, 1))
    names = {"<f4": "float", "u1": "uchar", "<i4": "int"}
    head = ["ply", "format binary_little_endian 1.0", f"comment time {float(rollout.times[frame])!r} s"]
    head += [f"comment body {k} {name}" for k, name in enumerate(rollout.bodies)]
    head += [f"element vertex {n}", *(f"property {names[t]} {name}" for name, t in fields), "end_header", ""]
    return "\n".join(head).encode("utf-8") + points.tobytes()


def _csv(rollout: Rollout, frame: int, body: np.ndarray) -> str:
    """A header line, then one line a particle: body, x, y(, z) in m (and vx, vy(, vz) in m/s)."""
    names = list(rollout.bodies)
    axes = "xyz"[: rollout.dim]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    values = rollout.position[frame]
    head = ["body", *axes]
    if rollout.velocity is not None:
        values = np.concatenate([values, np.asarray(rollout.velocity[frame], np.float32)], axis=1)
        head += [f"v{a}" for a in axes]
    writer.writerow(head)
    for k, row in zip(body, values, strict=True):
        writer.writerow([names[k], *(str(v) for v in row)])
    return text.getvalue()
