"""Recorded rollouts with their scenery, and videos of them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from taichi_sim.film.scenery import Scenery
from taichi_sim.io.video import VideoInfo, check_video_path, write_video
from taichi_sim.simulation import Rollout, Simulation
from taichi_sim.viz.camera import Camera2D, Camera3D
from taichi_sim.viz.picture import Picture

#: A video of a shorter rollout is slowed down to last this long, of a longer one sped up to this (s).
SHORTEST, LONGEST = 4.0, 20.0


@dataclass(frozen=True)
class Film:
    """A recorded rollout with its scenery: what videos are made of. :meth:`of` takes both from a simulation."""

    scenery: Scenery
    rollout: Rollout

    @classmethod
    def of(cls, sim: Simulation) -> "Film":
        """The simulation's last recorded rollout; it is run again if there is none of its present values."""
        if sim.rollout is None:
            sim.run(record=True)
        assert sim.rollout is not None
        return cls(Scenery.of(sim), sim.rollout)

    @property
    def frames(self) -> int:
        """Number of pictures there can be: the start and every frame."""
        return len(self.rollout.times)

    @property
    def duration(self) -> float:
        """Simulated time, s."""
        return float(self.rollout.times[-1])

    def pictures(
        self,
        frames: Sequence[int] | None = None,
        *,
        aspect: float = 4 / 3,
        caption: str | None = None,
        camera: "Camera2D | Camera3D | None" = None,
    ) -> Iterator[Picture]:
        """Pictures of ``frames`` (default: all), under a caption (default: the scene's name) and the time."""
        scenery, rollout = self.scenery, self.rollout
        camera = camera or scenery.framed(scenery.wrapped(rollout.position), aspect)
        loudest = max(1.0, float(np.max(np.abs(rollout.activation), initial=0.0)))
        head = scenery.title if caption is None else caption
        centres = [rollout.position[:, part].mean(axis=1) for part in scenery.traced]
        turned = np.stack(list(rollout.rotation.values()), axis=1) if rollout.rotation else None
        for f in range(self.frames) if frames is None else frames:
            command = rollout.activation[min(f, len(rollout.activation) - 1)] / loudest
            lines = "\n".join(filter(None, (head, f"t = {rollout.times[f]:.2f} s")))
            trails = [c[: f + 1] for c in centres]
            R = None if turned is None else turned[f]
            yield scenery.picture(rollout.position[f], command, R, caption=lines, camera=camera, trails=trails)


def pictures(sim: Simulation, rollout: Rollout | None = None, **options) -> Iterator[Picture]:
    """A picture of every frame of ``rollout`` (default: the simulation's own); ``options`` of :meth:`Film.pictures`."""
    film_ = Film.of(sim) if rollout is None else Film(Scenery.of(sim), rollout)
    return film_.pictures(**options)


def film(
    sim: Simulation,
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int] = (640, 480),
    fps: float | None = None,
    caption: str | None = None,
    most: int = 240,
) -> VideoInfo:
    """Write the simulation's rollout as a video (mp4, gif or PNGs, by the ending of ``path``).

    ``size`` (width, height) px. With ``fps`` every frame is shown, at that rate; without, the film lasts as long as
    the motion, but at least 4 s (slow motion) and at most 20, in at most ``most`` pictures. ``caption`` replaces the
    scene's name. Raises ``ValueError`` for a path or size that cannot be used.
    """
    return before_after(path, [(None, Film.of(sim))], size=size, fps=fps, caption=caption, most=most)


def before_after(
    path: str | os.PathLike[str],
    films: "Sequence[tuple[str | None, Film]]",
    *,
    size: tuple[int, int] = (640, 480),
    fps: float | None = None,
    caption: str | None = None,
    most: int = 120,
) -> VideoInfo:
    """Write films of equal duration side by side, each above its label; ``size`` is that of each. See :func:`film`."""
    from taichi_sim.viz.compose import side_by_side
    from taichi_sim.viz.renderer import Renderer

    check_video_path(path)
    width, height = size
    shown, rate = pace(films[0][1], fps, most)
    first = films[0][1].scenery
    seen = np.concatenate([one.rollout.position[shown] for _, one in films]) if first.camera is None else np.empty(0)
    camera = first.framed(first.wrapped(seen) if seen.size else seen, width / height)
    with Renderer(width, height) as renderer:

        def column(one: Film) -> Iterator[np.ndarray]:
            for picture in one.pictures(shown, caption=caption, camera=camera):
                yield renderer.render(picture)

        columns = [column(one) for _, one in films]
        labels = [label for label, _ in films if label]
        frames = side_by_side(columns, labels) if len(columns) > 1 or labels else columns[0]
        return write_video(path, frames, rate)


def pace(one: Film, fps: float | None, most: int) -> tuple[list[int], float]:
    """Frames to show and frames/s."""
    if fps is not None:
        return list(range(one.frames)), float(fps)
    length = min(max(one.duration, SHORTEST), LONGEST)
    count = max(1, min(one.frames, most, round(30 * length)))
    shown = np.unique(np.rint(np.linspace(0, one.frames - 1, count)).astype(int))
    return shown.tolist(), max(len(shown) / length, 1.0)
