"""A compiled scene in memory: what it is, and its end."""

import inspect
import logging
from dataclasses import dataclass, field
from os import PathLike
from typing import NoReturn

import numpy as np

from taichi_sim import runtime as taichi_runtime
from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.doubts import Overlaps
from taichi_sim.compile.continuum.resolution import resolution_notes
from taichi_sim.compile.family import State
from taichi_sim.compile.model import Model, compile_scene
from taichi_sim.core.errors import unknown
from taichi_sim.core.memory import refuse_beyond_memory
from taichi_sim.runtime import ti
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation.turns import exclusive
from taichi_sim.simulation.world import World
from taichi_sim.timeline.schedule import Costs, Schedule, make_schedule, parse_memory
from taichi_sim.timeline.tape import open_tape
from taichi_sim.timeline.timeline import Timeline

log = logging.getLogger("taichi_sim")


@dataclass(frozen=True)
class Rollout:
    """Recorded frames: ``times`` (frames + 1,) s, ``position`` (frames + 1, points, dim) m, f32; of one environment.
    Where ``horizon`` was set, frames are those up to there.

    ``activation`` (frames, actuators); ``bodies`` gives each body's points (particles; a rigid body's centre of mass
    and its markers); ``rotation`` (frames + 1, dim, dim), f32, is that of each rigid body. ``observed`` holds the
    observables asked for, by path, (frames + 1, …), f64; with several environments (envs, frames + 1, …).
    """

    times: np.ndarray
    position: np.ndarray
    activation: np.ndarray
    bodies: dict[str, slice]
    rotation: dict[str, np.ndarray] = field(default_factory=dict)
    observed: dict[str, np.ndarray] = field(default_factory=dict)


class Engine:
    """Memory, values and launches behind :class:`Simulation`: one forward run, one backward sweep at a time."""

    def __init__(
        self,
        scene: "Scene | str | PathLike[str]",
        precision: str = "f32",
        arch: str = "cpu",
        envs: int = 1,
        memory: str | int = "500MB",
        seed: int = 0,
        threads: int | None = None,
        segment: int | None = None,
        plain_launches: bool = False,
        **misspelt: NoReturn,
    ) -> None:
        for name in misspelt:
            allowed = [known for known in inspect.signature(type(self)).parameters if known != "misspelt"]
            raise TypeError(f"Simulation: {unknown('argument', name, allowed)}")
        if isinstance(envs, bool) or not isinstance(envs, int) or envs < 1:
            raise ValueError(f"envs must be a whole number of at least 1, got {envs!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")
        budget = parse_memory(memory)
        scene = scene if isinstance(scene, Scene) else Scene.load(scene)
        #: The scene as it was given, whatever was given as plain dicts read as tables.
        self.scene = from_dict(scene.to_dict(), scene.source)
        self.precision, self.envs, self.seed = precision, envs, seed
        self._use = ""  # the public method under way
        self._world: World | None = None
        self._runtime = taichi_runtime.start(precision, arch, threads)
        self.model: Model = compile_scene(self.scene, envs, seed)
        self._values: Values = {path: v.copy() for path, v in self.model.values.items()}
        #: Why the last run is not to be trusted; these are among the notes too.
        self.doubts: list[str] = []
        #: What should be known about the scene, the last run, and gradients that were zero.
        self.notes: list[str] = list(self.model.notes)
        self._overlapping: list[str] = []  # these are among the notes too
        if (soft := self.model.continuum) is not None:
            duration = float(self.model.scene.duration)
            self.notes += resolution_notes(soft.plan, precision, soft.limit.max_speed, duration)
            self._overlaps = Overlaps(soft.contacts, soft.slices)
            self._overlapping = self._overlaps.notes(self._values, soft.begin(self._values)["x"])
        families = self.model.families.values()
        self._budget, self._every, self._segment = budget, max(family.every for family in families), segment
        longest = [most for family in families if (most := family.longest()) is not None]
        self.schedule: Schedule = make_schedule(
            self.model.substeps * self.frames, self._costs(), budget, self._every, segment, min(longest, default=None)
        )
        self._whole = self.schedule  # that of all frames; the arrays hold one segment of it
        refuse_beyond_memory(
            f"memory = {memory}", self.schedule.bytes, "give a smaller memory, fewer envs, or a coarser grid"
        )
        self._world = self._make_world(plain_launches)
        self._timeline = Timeline(self._world, self.schedule, [])
        self._final: State | None = None
        self._final_slot = 0  # where the solvers hold it, if nothing has swept over it
        self._swept = False
        self._final_felt: State = {}
        self._losses: dict[str, np.ndarray] = {}
        self._gradients: Values = {}
        self._user_arrays: dict[str, ti.Ndarray] = {}
        self._taken: dict[str, np.ndarray] = {}  # their gradients that were carried back
        self._tape: object | None = None  # the user's ti.ad.Tape the last run is on
        self.rollout: Rollout | None = None
        #: Positions (points, dim), m, of the frames so far, while a recorded run is under way (for ``progress``).
        self.recorded: list[np.ndarray] = []
        #: The same for the rotations (rigid bodies, dim, dim).
        self.turned: list[np.ndarray] = []
        log.info("dt %.3g s, %d substeps a frame; %s", self.dt, self.substeps, self.schedule)

    def _make_world(self, plain: bool) -> World:
        segment = self.schedule.segment
        solvers = {
            name: family.make(self._runtime, self.model.substeps, self.frames, segment, plain)
            for name, family in self.model.families.items()
        }
        link, spheres, couplings = self.model.meeting, None, {}
        for name, joint in self.model.interfaces.items():
            lead = next(iter(couplings.values()), None)
            couplings[name] = joint.make(solvers[name], solvers["rigid"], lead, segment, plain)
        if link is not None:
            spheres = link.make(solvers["continuum"], solvers["particles"], segment, plain)
        return World(solvers, couplings, spheres)

    def _costs(self) -> Costs:
        parts = [family.costs(self.precision, self.frames) for family in self.model.families.values()]
        parts += [joint.costs() for joint in self.model.interfaces.values()]
        if self.model.meeting is not None:
            parts.append(self.model.meeting.costs(self.precision))
        return Costs(sum(c.fixed for c in parts), sum(c.stored for c in parts), sum(c.snapshot for c in parts))

    # ---- what it is ----

    @property
    def n(self) -> int:
        """Points of one environment: particles, and the centres and markers of rigid bodies."""
        return self.model.points

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.model.scene.dim

    @property
    def frames(self) -> int:
        """Frames of the whole rollout."""
        return self.model.scene.frames

    @property
    def horizon(self) -> int:
        """Frames a rollout is run for; all of them unless it is set.

        Runs, recordings and gradients end there, "final" objectives look there, and nothing is compiled anew. Signals
        keep their length: what they do later has no effect, and no gradient. ``ValueError`` unless it is a whole
        number from 1 to :attr:`frames`.
        """
        return self.model.judge.last

    @horizon.setter
    def horizon(self, frames: int) -> None:
        self._set_horizon(frames)

    @exclusive
    def _set_horizon(self, frames: int) -> None:
        world = self._alive()
        if isinstance(frames, bool) or not isinstance(frames, int | np.integer) or not 1 <= frames <= self.frames:
            raise ValueError(
                f"horizon = {frames!r}: must be a whole number from 1 to {self.frames}, the frames of the rollout"
            )
        if self._tape is not None and self._tape is open_tape():
            raise RuntimeError("horizon cannot be set between run() and the end of its ti.ad.Tape; set it before run()")
        if frames == self.horizon:
            return
        self.model.judge.last = int(frames)
        self.schedule = self._whole if frames == self.frames else self._shorter(self.substeps * self.horizon)
        self._timeline.close()
        self._timeline = Timeline(world, self.schedule, [])
        self._final = self.rollout = None

    def _shorter(self, substeps: int) -> Schedule:
        """The schedule of fewer substeps within the same budget, in the arrays there are."""
        costs, held = self._costs(), self._whole.segment
        costs = Costs(costs.fixed + (held + 1) * costs.stored, 0, costs.snapshot)
        return make_schedule(substeps, costs, self._budget, self._every, self._segment, held)

    @property
    def frame_dt(self) -> float:
        """Time between frames, s."""
        return float(self.model.scene.frame_dt)

    @property
    def substeps(self) -> int:
        """Substeps of a frame."""
        return self.model.substeps

    @property
    def dt(self) -> float:
        """Substep, s (of the first environment)."""
        return float(self._values["dt"][0])

    # ---- end ----

    @exclusive
    def close(self) -> None:
        """Free all memory. Safe to call twice."""
        if self._world is not None:
            self._timeline.close()
            self._world.close()
            self._world = None
        for array in self._user_arrays.values():
            taichi_runtime.free(array.grad, self._runtime)
            taichi_runtime.free(array, self._runtime)
        self._user_arrays.clear()

    def _alive(self) -> World:
        if not self._runtime.alive:
            raise RuntimeError(
                "this simulation's memory is gone: ti.init, ti.reset or a simulation of another precision was started "
                "since; build it again"
            )
        if self._world is None:
            raise RuntimeError("this simulation was closed; build it again")
        return self._world

    def _drop(self, value: np.ndarray) -> np.ndarray:
        return value[0] if self.envs == 1 else value
