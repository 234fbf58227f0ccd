"""Materials: density and law parameters, shared, overridden by a body, or given per particle."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.laws.law import Law, laws
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.solver import MpmSolver

#: Nodes lighter than this share of the lightest particle are left alone. Momentum is lost there, so it has to be
#: below rounding.
MASS_FLOOR = {"f32": 1e-10, "f64": 1e-20}


@dataclass(frozen=True)
class BodyMatter:
    """Material of one body: where each parameter comes from, the rows of the material table it owns and the rest
    volume of a particle of each row (m³; 2-D: m² times a metre)."""

    name: str
    law: Law
    density: str
    parameters: dict[str, str]
    volume: np.ndarray
    particles: slice
    rows: slice

    @property
    def paths(self) -> list[str]:
        """Paths it depends on."""
        return [self.density, *self.parameters.values()]

    @property
    def per_particle(self) -> bool:
        """Whether every particle has a row of its own."""
        return self.rows.stop - self.rows.start > 1


class Matter(Binding):
    """Fills the material table: rest volume, mass and law coefficients a row."""

    def __init__(self, bodies: list[BodyMatter], envs: int) -> None:
        self.bodies = bodies
        self.envs = envs
        self.rows = max(b.rows.stop for b in bodies)

    def _parameters(self, body: BodyMatter, values: Values) -> dict[str, np.ndarray]:
        count = body.rows.stop - body.rows.start
        spread = {}
        for name, path in body.parameters.items():
            value = values[path]
            spread[name] = np.broadcast_to(value.reshape(self.envs, -1), (self.envs, count))
        return spread

    def density(self, body: BodyMatter, values: Values) -> np.ndarray:
        """(envs, rows of the body) kg/m³."""
        count = body.rows.stop - body.rows.start
        return np.broadcast_to(values[body.density].reshape(self.envs, -1), (self.envs, count))

    def masses(self, values: Values, particles: int) -> np.ndarray:
        """(envs, particles) kg, in body order."""
        out = np.empty((self.envs, particles))
        for body in self.bodies:
            out[:, body.particles] = body.volume * self.density(body, values)
        return out

    def apply(self, values: Values, solver: MpmSolver) -> None:
        table = np.zeros((self.envs, self.rows, 8))
        for body in self.bodies:
            table[:, body.rows, 0] = body.volume
            table[:, body.rows, 1] = body.volume * self.density(body, values)
            coefficients = body.law.coefficients(self._parameters(body, values))
            table[:, body.rows, 2 : 2 + body.law.n_coefficients] = coefficients
        solver.store.write("material", table.reshape(-1, 8))
        floor = MASS_FLOOR[solver.store.runtime.precision]
        solver.set_mass_floor(floor * float(table[:, :, 1].min()))

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        bar = solver.store.reduced_adjoint("material").reshape(self.envs, self.rows, 8)
        out: Values = {}
        for body in self.bodies:
            mine = bar[:, body.rows]
            add_to(out, values, body.density, body.volume * mine[..., 1])
            parts = body.law.coefficients_vjp(
                self._parameters(body, values), mine[..., 2 : 2 + body.law.n_coefficients]
            )
            for name, path in body.parameters.items():
                add_to(out, values, path, parts[name])
        return out

    def pullback_mass(self, values: Values, mass_bar: np.ndarray) -> Values:
        """Gradient by density of what depends on the particles' masses, ``mass_bar`` (envs, particles)."""
        out: Values = {}
        for body in self.bodies:
            mine = body.volume * mass_bar[:, body.particles]
            add_to(out, values, body.density, mine if body.per_particle else mine.sum(axis=1, keepdims=True))
        return out


def add_to(out: Values, values: Values, path: str, part: np.ndarray) -> None:
    """Add (envs, rows) gradients to ``path``, summed where the value is shared by all rows."""
    shape = values[path].shape
    if part.reshape(part.shape[0], -1).shape[1] != int(np.prod(shape[1:], dtype=int)):
        part = part.reshape(part.shape[0], -1).sum(axis=1)
    out[path] = out.get(path, 0.0) + np.asarray(part).reshape(shape)


def body_matter(
    scene: Scene, bodies: list[BodyParticles], slices: dict[str, slice], values: Values
) -> list[BodyMatter]:
    """Material of every body. Raises ``ValueError`` for values per particle that are not as many as the particles."""
    out, row = [], 0
    for body in bodies:
        found = resolve_material(scene, scene.bodies[body.name].material)
        law = laws.get(found.law)
        own, shared = f"bodies.{body.name}.material", f"materials.{found.shared}"
        names = ["density", *(p.name for p in law.parameters if p.kind == "real" and p.differentiable)]
        where = {name: f"{own if name in found.overridden else shared}.{name}" for name in names}
        density, parameters = where["density"], {name: path for name, path in where.items() if name != "density"}
        paths = list(where.values())
        n = len(body.points_rest)
        sizes = {int(np.prod(values[p].shape[1:], dtype=int)) for p in paths if values[p].ndim > 1}
        for size in sizes - {n}:
            bad = next(p for p in paths if values[p].ndim > 1 and values[p][0].size == size)
            raise ValueError(f"{bad} has {size} entries, body {body.name!r} has {n} particles: give one each")
        volume = body.rest_volume
        count = n if sizes or np.ptp(volume) > 1e-12 * volume.max() else 1
        out.append(
            BodyMatter(body.name, law, density, parameters, volume[:count], slices[body.name], slice(row, row + count))
        )
        row += count
    return out


def law_order(bodies: list[BodyMatter], names: list[str]) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """Particles grouped by law, and the range of each law."""
    order, ranges, at = [], [], 0
    for name in names:
        for body in bodies:
            if body.law.name == name:
                order.append(np.arange(body.particles.start, body.particles.stop))
        size = sum(map(len, order)) - at
        ranges.append((at, at + size))
        at += size
    return np.concatenate(order).astype(np.int32), tuple(ranges)
