"""Chambers and tendons on one family's particles: their topology, and their numbers to the solver and back."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.actuation.actuator import ChamberLoad, TendonLoad
from taichi_sim.compile.acting.anchors import Hold, fixed, on, within
from taichi_sim.compile.acting.cavities import hole_of, near, springs_of, volume
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.drives import Actuation, Actuators
from taichi_sim.compile.family import add
from taichi_sim.compile.limits import StepLimit, extreme
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.acting.arrays import CHAMBER, TENDON, ActingPlan
from taichi_sim.solvers.acting.solver import Acting

#: What a point of a tendon goes with that is held where it is.
WORLD = "world"

Host = BodyParticles | Cluster


@dataclass(frozen=True)
class Unit:
    """One chamber or tendon: actuator ``index``, its anchors and, of a chamber, its faces as indices of all anchors;
    ``points`` (n, dim) are the places of a chamber before the pose, which stay."""

    index: int
    actuation: Actuation
    anchors: slice
    faces: np.ndarray
    points: np.ndarray

    @property
    def is_chamber(self) -> bool:
        """Whether it is a chamber."""
        return self.actuation.kind.drives == "chamber"


class ActingForces(Binding):
    """Chambers and tendons that act on the ``particles`` of one family.

    ``hosts`` are the family's bodies or springs with their particles, ``start`` gives places at time 0 and ``masses``
    masses, ``spread_mass`` the gradient back from these, ``enter`` adds to the adjoint of places in the solver.
    """

    def __init__(
        self,
        scene: Scene,
        hosts: Mapping[str, tuple[Host, slice]],
        actuators: Actuators,
        particles: int,
        start: Callable[[Values], np.ndarray],
        masses: Callable[[Values], np.ndarray],
        spread_mass: Callable[[Values, np.ndarray], Values],
        enter: Callable[[Any, np.ndarray], None],
        values: Values,
    ) -> None:
        self.actuators, self.envs, self.dim = actuators, actuators.envs, scene.dim
        self.start, self.masses, self.spread_mass, self.enter = start, masses, spread_mass, enter
        self.hosts, self.scene = hosts, scene
        self.holds: list[Hold] = []
        self.units: list[Unit] = []
        for a, one in enumerate(actuators.actuators):
            if one.target in hosts and one.kind.drives in ("chamber", "tendon"):
                self.units.append(
                    self._chamber(a, one) if one.kind.drives == "chamber" else self._tendon(a, one, values)
                )
        self.plan = self._plan(particles)

    def __bool__(self) -> bool:
        return bool(self.units)

    # ---- topology ----

    def _chamber(self, a: int, one: Actuation) -> Unit:
        path, (host, where) = f"actuators.{one.name}", self.hosts[one.target]
        table, at = self.scene.actuators[one.name], len(self.holds)
        if isinstance(host, BodyParticles):
            if table.region is not None:
                raise ValueError(f"{path}.region: a chamber in a body is one of its holes; name it by hole instead")
            points, faces = hole_of(path, host, int(one.parameters.fixed["hole"]))
            self.holds += within(path, host.points_rest, where.start, points, _pitch(host))
        else:
            chosen = np.arange(host.count) if table.region is None else host.regions[table.region]
            parts, faces = springs_of(path, host, chosen)
            points = host.points[parts]
            self.holds += [on(where.start + int(p), host.points[p]) for p in parts]
        return Unit(a, one, slice(at, len(self.holds)), at + faces, points)

    def _tendon(self, a: int, one: Actuation, values: Values) -> Unit:
        path, at = f"actuators.{one.name}", len(self.holds)
        points, through = values[f"{path}.points"][0], list(one.parameters.fixed.get("through") or ())
        through = through or [one.target] * len(points)
        if len(points) < 2:
            raise ValueError(f"{path}.points: a tendon runs through at least 2 points, got {len(points)}")
        if len(through) != len(points):
            raise ValueError(f"{path}.through: must have one name a point: {len(points)}, got {len(through)}")
        for i, (name, point) in enumerate(zip(through, points, strict=True)):
            self.holds.append(self._hold(f"{path}.through[{i}]", f"{path}.points[{i}]", str(name), point))
        return Unit(a, one, slice(at, len(self.holds)), np.zeros((0, self.dim), int), np.zeros((0, self.dim)))

    def _hold(self, through: str, what: str, name: str, point: np.ndarray) -> Hold:
        if name == WORLD:
            return fixed(self.dim)
        if name not in self.hosts:
            others = {**self.scene.bodies, **self.scene.springs, **self.scene.grains, **self.scene.rigid}
            if name in others:
                mine = "[bodies]" if next(iter(self.hosts)) in self.scene.bodies else "[springs]"
                raise ValueError(f"{through} = {name!r}: this tendon runs through {mine}, and fixed points, only")
            raise ValueError(f"{through}: {near(name, [*self.hosts, WORLD])}")
        host, where = self.hosts[name]
        if isinstance(host, BodyParticles):
            return within(what, host.points_rest, where.start, point[None], _pitch(host))[0]
        nearest = int(np.argmin(np.linalg.norm(host.points - point, axis=1)))
        return on(where.start + nearest, host.points[nearest])

    def _plan(self, particles: int) -> ActingPlan:
        holding = [hold.particles for hold in self.holds]
        bound, index = np.unique(np.concatenate([np.zeros(0, int), *holding]), return_inverse=True)
        anchor = np.repeat(np.arange(len(holding)), [len(p) for p in holding])
        faces = [unit.faces for unit in self.units]
        first, units = 0, []
        for unit in self.units:
            if unit.is_chamber:
                units.append((CHAMBER, first, first := first + len(unit.faces)))
            else:
                units.append((TENDON, unit.anchors.start, unit.anchors.stop))
        return ActingPlan(
            self.dim, self.envs, particles, len(holding), bound, np.column_stack([anchor, index.reshape(-1)]),
            np.concatenate([np.zeros((0, self.dim), int), *faces]), np.array(units, int).reshape(-1, 3),
        )  # fmt: skip

    # ---- numbers ----

    def _points(self, unit: Unit, values: Values, e: int) -> np.ndarray:
        return unit.points if unit.is_chamber else values[f"actuators.{unit.actuation.name}.points"][e]

    def _weights(self, values: Values, e: int) -> tuple[list[np.ndarray], np.ndarray]:
        """Weights of every anchor, and what is fixed of its place, (anchors, dim)."""
        weights, offset = [], np.zeros((len(self.holds), self.dim))
        for unit in self.units:
            for a, point in zip(
                range(*unit.anchors.indices(len(self.holds))), self._points(unit, values, e), strict=True
            ):
                weights.append(self.holds[a].weights(point))
                if not len(self.holds[a].particles):
                    offset[a] = point
        return weights, offset

    def _places(self, weights: list[np.ndarray], offset: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(anchors, dim) places for particles at ``x`` (n, dim)."""
        return offset + np.array([w @ x[hold.particles] for w, hold in zip(weights, self.holds, strict=True)])

    def _measure(self, unit: Unit, places: np.ndarray) -> tuple[float, np.ndarray]:
        """Volume of a chamber, length of a tendon, and its gradient by all places."""
        if unit.is_chamber:
            return volume(places, unit.faces)
        slope, sides = np.zeros(places.shape), np.diff(places[unit.anchors], axis=0)
        lengths = np.linalg.norm(sides, axis=1)
        along = sides / np.maximum(lengths, 1e-300)[:, None]
        mine = slope[unit.anchors]
        mine[1:] += along
        mine[:-1] -= along
        return float(lengths.sum()), slope

    def _load(self, unit: Unit, values: Values, e: int) -> Any:
        one = unit.actuation
        return one.kind.command(one.parameters.at(values, e), self.actuators.activation[e, :, unit.index])

    def apply(self, values: Values, solver: Any) -> None:
        store, frames, count = self._store(solver), len(self.actuators.times), len(self.units)
        trait, drive = np.zeros((self.envs, count, 3)), np.zeros((frames, self.envs, count, 2))
        found, x = [self._weights(values, e) for e in range(self.envs)], self.start(values)
        for e, (weights, offset) in enumerate(found):
            places = self._places(weights, offset, x[e])
            for u, unit in enumerate(self.units):
                load, (size, _) = self._load(unit, values, e), self._measure(unit, places)
                if unit.is_chamber:
                    drive[:, e, u] = np.stack([load.pressure, load.air], axis=1)
                    trait[e, u] = float(load.ambient), size, 0.0
                else:
                    drive[:, e, u] = np.stack([load.tension, load.shortening], axis=1)
                    trait[e, u] = float(load.stiffness), size + float(load.slack), float(load.friction)
        if len(self.plan.links):
            store.write("weight", np.concatenate([np.concatenate(weights) for weights, _ in found]))
            store.write("mass", self.masses(values)[:, self.plan.bound].reshape(-1))
        store.write("offset", np.concatenate([offset for _, offset in found]))
        store.write("dt", values["dt"])
        store.write("trait", trait.reshape(-1, 3))
        store.write("drive", drive.reshape(frames, -1, 2))

    def tightened(
        self, limit: StepLimit, values: Values, bounds: Mapping[str, tuple[np.ndarray, np.ndarray]]
    ) -> StepLimit:
        """``limit``, or that of the stiffest chamber or cable where it is smaller: half of that of stability.

        A unit is a spring along the gradient s of what it measures, volume or length: its stiffness is ``s k sᵀ``, and
        ω² = k Σ |s|²/m. Its pull is a spring across every line, its pressure one between neighbouring corners.
        """
        at = {**values, **{path: self._largest(values, bounds, path) for path in bounds if path in values}}
        x, mass = self.start(values), self.masses(at)
        for e in range(self.envs if self.units else 0):
            weights, offset = self._weights(values, e)
            places = self._places(weights, offset, x[e])
            for unit in self.units:
                square = self._square(unit, at, e, places, weights, mass[e])
                if square * limit.allowed**2 > 1.0:
                    what = "its air" if unit.is_chamber else "its cable"
                    limit = StepLimit(
                        1.0 / math.sqrt(square), unit.actuation.name, 0.0, limit.max_speed, "actuators",
                        f"stiffness and pull of {what} over the mass of what it acts on",
                    )  # fmt: skip
        return limit

    @staticmethod
    def _largest(values: Values, bounds: Mapping[str, tuple[np.ndarray, np.ndarray]], path: str) -> np.ndarray:
        """The stiffest value within ``bounds`` of what a frequency depends on; others as they are."""
        entry, table = path.split(".")[-1], path.split(".")[0]
        if entry in ("mass", "density"):
            return np.broadcast_to(extreme(values, dict(bounds), path, -1), values[path].shape)
        if table != "actuators" or entry not in ("strength", "stiffness", "ambient"):
            return values[path]
        if entry == "strength" and not np.isfinite(bounds[path]).all():
            return values[path]
        return np.broadcast_to(extreme(values, dict(bounds), path, +1), values[path].shape)

    def _square(
        self, unit: Unit, values: Values, e: int, places: np.ndarray, weights: list[np.ndarray], mass: np.ndarray
    ) -> float:
        """Largest squared frequency of one unit, 1/s²: its own, for what it measures, and that of what it pushes."""
        load, (size, slope) = self._load(unit, values, e), self._measure(unit, places)
        strength = abs(float(values[f"actuators.{unit.actuation.name}.strength"][e]))
        along = np.zeros((len(mass), self.dim))
        for a in range(*unit.anchors.indices(len(self.holds))):
            np.add.at(along, self.holds[a].particles, weights[a][:, None] * slope[a])
        if unit.is_chamber:
            gas = float(np.max(load.air)) + float(load.ambient) * size
            stiffness, push = gas / size**2, max(float(np.max(np.abs(load.pressure))), gas / size - float(load.ambient))
            across = np.zeros(len(places))
            sides = np.linalg.norm(places[np.roll(unit.faces, -1, axis=1)] - places[unit.faces], axis=2).sum(axis=1)
            each = push * (0.5 * np.ones(len(unit.faces)) if self.dim == 2 else sides / 6.0)
            np.add.at(across, unit.faces, each[:, None])
        else:
            reel = max(strength, float(np.max(load.shortening))) - float(load.slack)
            stiffness, push = float(load.stiffness), max(float(np.max(load.tension)), 0.0)
            push = max(push, stiffness * reel) if stiffness > 0 else max(push, strength)
            lengths = np.linalg.norm(np.diff(places[unit.anchors], axis=0), axis=1)
            across, each = np.zeros(len(places)), 2.0 * push / np.maximum(lengths, 1e-3 * max(size, 1e-300))
            across[unit.anchors.start : unit.anchors.stop - 1] += each
            across[unit.anchors.start + 1 : unit.anchors.stop] += each
        moved = [
            across[a] * float(np.sum(weights[a] ** 2 / mass[self.holds[a].particles]))
            for a in range(*unit.anchors.indices(len(self.holds)))
        ]
        return stiffness * float(np.sum(along**2 / mass[:, None])) + max(moved)

    def pullback(self, values: Values, solver: Any) -> Values:
        """Gradients by path; that by the places at time 0 goes into the solver's adjoint of them."""
        store, frames, count = self._store(solver), len(self.actuators.times), len(self.units)
        out: Values = {"dt": store.reduced_adjoint("dt")}
        trait = store.reduced_adjoint("trait").reshape(self.envs, count, 3)
        drive = store.reduced_adjoint("drive").reshape(frames, self.envs, count, 2)
        weight = store.reduced_adjoint("weight").reshape(self.envs, -1)
        offset = store.reduced_adjoint("offset").reshape(self.envs, -1, self.dim)
        x = self.start(values)
        x_bar = np.zeros(x.shape)
        for e in range(self.envs):
            weights, fixed_at = self._weights(values, e)
            places = self._places(weights, fixed_at, x[e])
            place_bar = np.zeros(places.shape)
            for u, unit in enumerate(self.units):
                self._pullback_load(out, unit, values, e, drive[:, e, u], trait[e, u])
                place_bar += trait[e, u, 1] * self._measure(unit, places)[1]
            self._pullback_places(out, values, e, weights, place_bar, weight[e], offset[e], x[e], x_bar[e])
        self.enter(solver, x_bar)
        if len(self.plan.links):
            mass_bar = np.zeros(x.shape[:2])
            mass_bar[:, self.plan.bound] = store.reduced_adjoint("mass").reshape(self.envs, -1)
            add(out, self.spread_mass(values, mass_bar))
        return out

    def _pullback_load(
        self, out: Values, unit: Unit, values: Values, e: int, drive: np.ndarray, trait: np.ndarray
    ) -> None:
        one = unit.actuation
        bar: ChamberLoad | TendonLoad = (
            ChamberLoad(drive[:, 0], drive[:, 1], trait[0])
            if unit.is_chamber
            else TendonLoad(drive[:, 0], drive[:, 1], trait[0], trait[1], trait[2])
        )
        parameters, u = one.parameters.at(values, e), self.actuators.activation[e, :, unit.index]
        gradient, u_bar = one.kind.command_vjp(parameters, u, bar)
        one.parameters.collect(out, values, e, gradient)
        self.actuators.activation_bar[e, :, unit.index] += u_bar

    def _pullback_places(
        self, out: Values, values: Values, e: int, weights: list[np.ndarray], place_bar: np.ndarray,
        weight: np.ndarray, offset: np.ndarray, x: np.ndarray, x_bar: np.ndarray,
    ) -> None:  # fmt: skip
        """From places at time 0, weights and offsets of one environment to points of tendons and to particles."""
        heads = self.plan.heads
        for a, (hold, w) in enumerate(zip(self.holds, weights, strict=True)):
            np.add.at(x_bar, hold.particles, w[:, None] * place_bar[a])
        for unit in self.units:
            if unit.is_chamber:
                continue
            path = f"actuators.{unit.actuation.name}.points"
            for i, a in enumerate(range(*unit.anchors.indices(len(self.holds)))):
                hold = self.holds[a]
                if len(hold.particles):
                    bar = weight[heads[a] : heads[a + 1]] + x[hold.particles] @ place_bar[a]
                    out[path][e, i] += hold.weights_vjp(bar)
                else:
                    out[path][e, i] += offset[a] + place_bar[a]

    @staticmethod
    def _store(solver: Any) -> Any:
        drive = solver.drive
        assert isinstance(drive, Acting)
        return drive.store


def _pitch(body: BodyParticles) -> float:
    """How far particles are apart, m."""
    return body.particle_volume ** (1.0 / len(body.center))
