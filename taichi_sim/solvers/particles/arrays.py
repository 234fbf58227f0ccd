"""The arrays of the particle solver, declared once; and the sizes and topology of one compiled scene."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from taichi_sim.core.array import Array

#: Kinds of walls. The first three act on velocities at the moment of impact (``walls``), the last one by the law of
#: contact, with spin (``contact``).
STICKY, SLIP, SEPARATE, COMPLIANT = 0, 1, 2, 3
WALL_KINDS = {"sticky": STICKY, "slip": SLIP, "separate": SEPARATE, "compliant": COMPLIANT}

#: Columns of ``tag``: row of ``surface`` (-1: touches nothing), force group, 1 where held, clan (particles of one clan
#: above 0 do not touch each other).
SURFACE, GROUP, HELD, CLAN = 0, 1, 2, 3


class Features(NamedTuple):
    """What a kernel is compiled for; whatever is absent costs nothing."""

    dim: int
    grains: bool
    hertz: bool
    rolling: bool
    springs: bool
    bends: bool
    loaded: bool
    driven: bool
    coupled: bool
    hard: bool
    obstacle: bool
    hosting: bool


@dataclass(frozen=True)
class ParticlesPlan:
    """Sizes and topology of one compiled scene, the same in all environments.

    ``edges`` are (a, b, actuator), ``bends`` are (a, b, c) with the bend at ``b``; particle indices are local to an
    environment. Actuator 0 and group 0 are the ones nothing drives. ``walls`` are kinds, ``obstacle`` the nodes along
    each axis of the grid with the distance from what stands in the way (none: nothing does). ``grains`` switches
    contact between particles, with compliant walls and with the obstacle on; ``neighbours`` and ``contacts`` are the
    room a particle has for them (:func:`rooms`). ``coupled`` gives every particle and step an ``impulse`` that other
    solvers fill; ``hosting`` lets a guest act within every step (:class:`~taichi_sim.solvers.particles.solver.Guest`),
    which takes shares instead of segments.
    """

    dim: int
    envs: int
    particles: int
    edges: tuple[tuple[int, int, int], ...] = ()
    bends: tuple[tuple[int, int, int], ...] = ()
    actuators: int = 1
    groups: int = 1
    surfaces: int = 1
    walls: tuple[int, ...] = ()
    obstacle: tuple[int, ...] = ()
    grains: bool = False
    hertz: bool = False
    rolling: bool = False
    neighbours: int = 0
    contacts: int = 0
    driven: bool = False
    driven_frames: int = 1
    coupled: bool = False
    hosting: bool = False
    partitions: int = 16
    segment_mode: bool = False

    def __post_init__(self) -> None:
        if self.dim not in (2, 3):
            raise ValueError(f"dim must be 2 or 3, got {self.dim}")
        for what, rows, width in (("edges", self.edges, 2), ("bends", self.bends, 3)):
            if not rows:
                continue
            ends = np.asarray(rows)[:, :width]
            if ends.min() < 0 or ends.max() >= self.particles:
                i = int(np.argmax((ends < 0).any(1) | (ends >= self.particles).any(1)))
                raise ValueError(
                    f"{what}[{i}] = {tuple(map(int, ends[i]))}: there are only particles 0 … {self.particles - 1}"
                )
            twice = np.sort(ends, axis=1)
            same = (twice[:, 1:] == twice[:, :-1]).any(1)
            if same.any():
                i = int(np.argmax(same))
                raise ValueError(f"{what}[{i}] = {tuple(map(int, ends[i]))} joins a particle to itself; leave it out")
        if self.edges and not 0 <= np.asarray(self.edges)[:, 2].max() < self.actuators:
            raise ValueError(f"edges name an actuator that is not there: there are actuators 0 … {self.actuators - 1}")
        if self.hosting and self.segment_mode:
            raise ValueError("a guest acts between kernels: hosting needs segment_mode = False")
        if (COMPLIANT in self.walls or self.obstacle) and not self.grains:
            raise ValueError("compliant walls and obstacles act by the law of contact: they need grains = True")
        if self.obstacle and (len(self.obstacle) != self.dim or min(self.obstacle) < 2):
            raise ValueError(f"obstacle = {self.obstacle}: at least two nodes along each of {self.dim} axes")
        if self.grains and min(self.neighbours, self.contacts) < 1:
            raise ValueError("grains need room for neighbours and contacts; take both from rooms(dim, radius)")

    @property
    def shares(self) -> int:
        """Fixed shares of an environment's particles; one where a task runs a whole environment."""
        return 1 if self.segment_mode else self.partitions

    @property
    def workers(self) -> int:
        """Fixed shares of all work."""
        return self.envs * self.shares

    @property
    def buckets(self) -> int:
        """Buckets of the hash of cells, a power of two."""
        return 1 << int(np.ceil(np.log2(max(8, self.particles)))) if self.grains else 1

    @property
    def features(self) -> Features:
        """What kernels are compiled for."""
        return Features(
            self.dim, self.grains, self.hertz, self.rolling and self.grains, bool(self.edges), bool(self.bends),
            self.groups > 1, self.driven, self.coupled, any(w != COMPLIANT for w in self.walls), bool(self.obstacle),
            self.hosting,
        )  # fmt: skip


def rooms(dim: int, radius: np.ndarray, walls: int = 0) -> tuple[int, int]:
    """``neighbours`` and ``contacts`` a particle needs room for, from the radii (particles without one are left out).

    Equal spheres touch at most 12 others, equal discs 6; a large one among small ones touches about as many as fit
    around it. Half as many again are near enough to be listed.
    """
    sizes = np.asarray(radius, dtype=float)
    sizes = sizes[sizes > 0]
    ratio = float(sizes.max() / sizes.min()) if sizes.size else 1.0
    touching = np.ceil(np.pi * (1 + ratio)) if dim == 2 else np.ceil(3.3 * (1 + ratio) ** 2)
    contacts = int(touching) + 2 + min(walls, 3)
    return 2 * int(touching) + 8, contacts


def declare(dim: int) -> tuple[Array, ...]:
    """All arrays of the solver in ``dim`` dimensions."""
    turn = (1,) if dim == 2 else (3,)
    v = ("dim",)

    def param(name: str, element: tuple, domain: str | tuple[str, ...], unit: str, doc: str, own: bool = True) -> Array:
        return Array(name, element, domain, "param", unit, doc, exclusive=own)

    state = (
        Array("x", v, "particle", "state", "m", "position"),
        Array("v", v, "particle", "state", "m/s", "velocity"),
        Array("spin", turn, "grain", "state", "rad/s", "angular velocity, world axes"),
        Array("partner", (), ("grain", "contact"), "state", "1", "what is touched, ascending, walls last, then -1",
              dtype="int", differentiable=False),
        Array("stretch", v, ("grain", "contact"), "state", "m", "tangential spring of a contact"),
        Array("roll", turn, ("roller", "contact"), "state", "rad", "rolling spring of a contact"),
    )  # fmt: skip
    parameters = (
        param("mass", (), "particle", "kg", "mass"),
        param("radius", (), "particle", "m", "radius of a grain; 0 for a point"),
        param("spring", (3,), "edge", "N/m, N s/m, m", "stiffness, damping, rest length"),
        param("bend_stiffness", (), "bend", "N m", "energy of a right angle"),
        param("surface", (4,), "surface", "N/m or Pa, s/m, 1, 1", "stiffness, damping, friction, rolling", own=False),
        param("step", (2,), "env", "s, 1/s", "dt, damping of all velocities", own=False),
        param("gravity", v, "env", "m/s²", "acceleration of everything", own=False),
        param("wall_normal", v, "wall", "1", "unit normal, into the domain", own=False),
        param("wall", (2,), "wall", "m, 1", "normal · y on the wall, friction coefficient", own=False),
        param("obstacle_friction", (), "env", "1", "Coulomb coefficient of the obstacle", own=False),
        param("particle_force", v, ("push", "driven"), "N", "external, per particle and frame"),
        param("impulse", v, ("step_slot", "coupled"), "N s", "external, per particle and step: for other solvers"),
    )
    inputs = (
        Array("group_force", v, "group", "input", "N", "on every particle of a group"),
        Array("actuation", (), "actuator", "input", "1", "rest lengths become 1 + actuation times as long"),
    )

    def scratch(name: str, element: tuple, domain: str | tuple[str, ...], doc: str, dtype: str = "int") -> Array:
        return Array(name, element, domain, "scratch", "mixed", doc, dtype=dtype)

    work = (
        scratch("tag", (4,), "body_particle", "surface, group, held, clan"),
        scratch("edge", (3,), "edges", "ends and actuator"),
        scratch("bend", (3,), "bends", "ends, the bend in the middle"),
        scratch("wall_kind", (), "walls", "sticky, slip, separate, compliant"),
        scratch("distance", (dim + 1,), "node", "distance from the obstacle and its slope at the nodes", "real"),
        scratch("grid", (4,), "one", "position of the first node, 1 / spacing", "real"),
        scratch("head", (2,), "heads", "first entry of a particle in spring_of and bend_of"),
        scratch("spring_of", (), "ends", "2 edge + end, sorted by particle"),
        scratch("bend_of", (), "corners", "3 bend + place, sorted by particle"),
        scratch("neighbour", (), ("grain", "list"), "number of neighbours, then their indices, ascending"),
        scratch("bucket", (), "buckets", "first place of a bucket in order"),
        scratch("bucket_of", (), "grain", "bucket of a particle"),
        scratch("order", (), "grain", "particles sorted by bucket"),
        scratch("built", v, "grain", "positions when neighbours were listed", "real"),
        scratch("stale", (), ("slot", "env"), "1 where a particle has left the reach of the lists"),
        scratch("free_velocity", v, ("slot", "walled"), "velocity before hard walls, after a guest", "real"),
        scratch("force_bar", v, "particle", "adjoint of force", "real"),
        scratch("torque_bar", turn, "grain", "adjoint of torque", "real"),
        scratch("stretch_bar", v, ("grain", "contact"), "adjoint of stretch after the step", "real"),
        scratch("roll_bar", turn, ("roller", "contact"), "adjoint of roll after the step", "real"),
        scratch("reach", (3,), "one", "reach of lists beyond touching, half of it squared, 1 / cell", "real"),
        scratch("extent", (), "extent", "sizes"),
        scratch("flag", (3,), "worker", "kind, slot, particle of what went wrong"),
    )
    return state + parameters + inputs + work


def domain_sizes(p: ParticlesPlan, slots: int) -> dict[str, int]:
    """Sizes of all domains."""
    total = p.envs * p.particles
    grain = total if p.grains else 1
    return {
        "particle": total,
        "grain": grain,
        "roller": grain if p.rolling else 1,
        "contact": p.contacts if p.grains else 1,
        "list": p.neighbours + 1 if p.grains else 1,
        "edge": p.envs * len(p.edges),
        "bend": p.envs * len(p.bends),
        "surface": p.envs * p.surfaces,
        "env": p.envs,
        "wall": p.envs * len(p.walls),
        "push": p.driven_frames if p.driven else 1,
        "driven": total if p.driven else 1,
        "step_slot": slots if p.coupled else 1,
        "coupled": total if p.coupled else 1,
        "group": p.envs * p.groups,
        "actuator": p.envs * p.actuators,
        "body_particle": p.particles,
        "edges": len(p.edges),
        "bends": len(p.bends),
        "walls": len(p.walls),
        "node": int(np.prod(p.obstacle)) if p.obstacle else 1,
        "heads": p.particles + 1,
        "ends": 2 * len(p.edges),
        "corners": 3 * len(p.bends),
        "buckets": p.envs * (p.buckets + 1),
        "slot": slots,
        "walled": total if p.features.hard or p.hosting else 1,
        "one": 1,
        "extent": 11,
        "worker": p.workers,
    }


def footprint(plan: ParticlesPlan, precision: str, frames: int, slots: int) -> int:
    """Bytes the solver's arrays will take."""
    sizes = domain_sizes(plan, slots)
    wide = 2 if precision == "f32" else 1  # adjoints of parameters are always f64
    total = 0
    for a in declare(plan.dim):
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64)) * a.bytes_each(precision, plan.dim)
        lead = {"state": slots, "input": frames}.get(a.role, 1)
        total += lead * count
        if a.role == "state" and a.differentiable:
            total += count
        elif a.role in ("param", "input"):
            total += lead * count * wide * (1 if a.exclusive else plan.shares)
    return total
