"""``taichi-sim view``: a scene in a window, recomputed when its design variables are moved by sliders."""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.cli import common
from taichi_sim.cli.console import Console
from taichi_sim.cli.parser import Parser

if TYPE_CHECKING:
    from taichi_sim.film import Scenery
    from taichi_sim.simulation import DesignVariable, Simulation
    from taichi_sim.viz.picture import Picture

EXAMPLES = """  taichi-sim view crawler
  taichi-sim view runs/crawler-optimize/best.toml --set gravity=[0,-1.6]"""

#: Arrays with more numbers get no sliders.
MOST_SLIDERS = 64
#: Least time between two rounds of the window while a rollout is computed, s.
ROUND = 0.04


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.scene()
    parser.add_argument("--size", metavar="WxH", default="800x600", help="size of the picture, px (default 800x600)")
    parser.settings()


def execute(arguments: argparse.Namespace) -> int:
    """Show it until the window is closed. Without a display: ``ValueError``."""
    with Console() as console:
        return _view(arguments, console)


def _view(arguments: argparse.Namespace, console: Console) -> int:
    width, height = _size(arguments.size)
    from taichi_sim.viz.window import Window, check_display

    check_display()
    scene = common.load_scene(arguments)
    from taichi_sim.simulation import Simulation

    settings = {name: getattr(arguments, name) for name in ("precision", "arch", "threads", "seed")}
    with Simulation(scene, segment=common.SEGMENT, **settings) as sim:
        console.facts([*common.facts(sim), common.how(sim)])
        player = Player(sim, width / height)
        console.notes([*sim.notes, *player.notes])
        with Window(player, width, height, f"taichi-sim: {scene.title}", running=True, loop=True) as window:
            while window.tick():
                if player.stale:
                    _compute(player, window)
    return 0


def _compute(player: "Player", window) -> None:
    """Recompute, with the window alive all the while; what goes wrong is shown in its status line."""
    due = time.perf_counter() + ROUND

    def round_of_window() -> bool:
        nonlocal due
        now = time.perf_counter()
        if now < due:
            return True
        alive = window.tick()
        after = time.perf_counter()
        due = after + max(ROUND, 2.0 * (after - now))  # drawing takes a third of the time at most
        return alive

    try:
        player.compute(round_of_window)
    except (ValueError, RuntimeError) as error:
        window.message, window.paused = (str(error).splitlines() or [type(error).__name__])[0], True


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and 64 <= int(width) <= 8192 and 64 <= int(height) <= 8192):
        raise ValueError(f"--size {text!r}: write WIDTHxHEIGHT, for example 800x600")
    return int(width), int(height)


class _Stopped(Exception):
    """Ends a rollout that nobody wants any more."""


class Player:
    """Shows a simulation's rollout frame by frame, and computes it anew after a slider moved.

    What :class:`taichi_sim.viz.window.Window` shows. Frames can be seen as soon as they are computed. Call
    :meth:`compute` whenever :attr:`stale`.
    """

    def __init__(self, sim: "Simulation", aspect: float = 4 / 3) -> None:
        self.sim, self.aspect = sim, aspect
        self.frame_dt = sim.frame_dt
        self.frame = 0
        self.stale = True
        self.computing = False
        self.notes: list[str] = []
        self.positions: list[np.ndarray] = []
        self.rotations: list[np.ndarray] = []
        self.sliders: Sequence[tuple[str, float, float, float]] = []
        self._where: list[tuple[str, tuple[int, ...]]] = []
        self._moved: dict[int, float] = {}  # sliders moved while a rollout is computed, which no value may change in
        for d in sim.design:
            self._add_sliders(d)
        self._look: Scenery | None = None

    def _add_sliders(self, d: "DesignVariable") -> None:
        if len(self.sliders) + d.value.size > MOST_SLIDERS:
            self.notes.append(f"no sliders for {d.path}: it has {d.value.size} numbers")
            return
        for index in np.ndindex(d.value.shape):
            low, high = slider_range(d, index)
            name = d.path.removeprefix("actuators.").replace(".signal.", ".") + (
                f"[{', '.join(map(str, index))}]" if index else ""
            )
            self.sliders = [*self.sliders, (name, float(d.value[index]), low, high)]
            self._where.append((d.path, index))

    # ---- what the window asks for ----

    def step(self) -> bool:
        """The next frame, if it is there; ``False`` at the end of the rollout."""
        if self.frame + 1 < len(self.positions):
            self.frame += 1
        elif not self.computing and not self.stale:
            return False
        return True

    def reset(self) -> None:
        """Back to the first frame."""
        self.frame = 0

    def status(self) -> str:
        """Line at the bottom of the window."""
        total = self.sim.frames
        now = f"frame {self._shown} of {total}, t = {self._shown * self.frame_dt:.3f} s"
        return now + (f"  ·  computing {100 * max(len(self.positions) - 1, 0) // total} %" if self.computing else "")

    @property
    def _shown(self) -> int:
        return max(0, min(self.frame, len(self.positions) - 1))

    def picture(self) -> "Picture":
        """What is there now."""
        from taichi_sim.film import Scenery

        if self._look is None:
            self._look = Scenery.of(self.sim)
        if not self.positions:
            self.positions, self.rotations = [self.sim.start["x"][0]], [self.sim.start_rotation]
        activation = self.sim.model.actuators.activation[0]
        command = activation[min(self._shown, len(activation) - 1)] / max(1.0, float(np.abs(activation).max(initial=0)))
        camera = self._look.framed(np.stack([self._look.lower, self._look.upper]), self.aspect)
        turned = self.rotations[self._shown]
        caption = self.sim.scene.title
        return self._look.picture(self.positions[self._shown], command, turned, camera=camera, caption=caption)

    def on_slider(self, index: int, value: float) -> None:
        """A design variable was moved."""
        if self.computing:
            self._moved[index], self.stale = value, True
            return
        path, where = self._where[index]
        array = self.sim.get(path)
        array[where] = value
        self.sim.set(path, array)
        self.stale = True

    # ---- computing ----

    def compute(self, alive: Callable[[], bool]) -> None:
        """Run the rollout. ``alive`` is called after every frame; ``False`` ends it, a moved slider too."""
        moved, self._moved = self._moved, {}
        for index, value in moved.items():
            self.on_slider(index, value)
        self.stale, self.computing = False, True
        self._look = None
        self.positions = self.positions[:0]

        def look(t: int, total: int) -> None:
            self.positions, self.rotations = self.sim.recorded, self.sim.turned
            if not alive() or self.stale:
                raise _Stopped

        try:
            self.sim.run(record=True, progress=look)
        except _Stopped:
            pass
        finally:
            self.computing = False


def slider_range(d: "DesignVariable", index: tuple[int, ...]) -> tuple[float, float]:
    """Ends of a slider: the bounds; without them a decade around the value, or one to each side of it."""
    value, low, high = float(d.value[index]), float(d.lower[index]), float(d.upper[index])
    if d.scale == "log":
        reach = (value / 10.0, value * 10.0)
    else:
        size = 3.0 * d.step if d.step is not None else max(1.0, 2.0 * abs(value))
        reach = (value - size, value + size)
    ends = (max(low, reach[0]), min(high, reach[1])) if not np.isfinite([low, high]).all() else (low, high)
    return ends if ends[0] < ends[1] else (ends[0] - 1.0, ends[0] + 1.0)
