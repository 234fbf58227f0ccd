"""The arrays of the coupling, declared once; and the sizes of one compiled scene."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array

#: Columns of ``row``: normal, arm from the centre of mass, velocity before contact (3 each), mass, α, b, μ, vs, weight
#: among the bodies that a particle touches, distance, adjoint of the velocity after contact (3).
#: A weld (``welds``) has b, a vector, in the place of the normal, and a μ below 0.
NORMAL, ARM, SPEED, MASS, ALPHA, BIAS = 0, 3, 6, 9, 10, 11
FRICTION, STICTION, WEIGHT, DISTANCE, BAR = 12, 13, 14, 15, 16

#: While the bodies' velocities are looked for, ``BAR`` holds the normal impulse over α m, and what of it is frozen.
PRESS, FROZEN = 16, 17

#: Columns of ``counts``.
COLLIDERS, ROWS, ROOM, POOL, LAWS, PARTITIONS, PARTICLES, WELDS = 0, 1, 2, 3, 4, 5, 6, 7


@dataclass(frozen=True)
class CouplingPlan:
    """Sizes and topology of one compiled scene, the same in all environments.

    ``colliders`` are (kind of shape, body), -1 for the world; those of a body stand together. ``rows`` are the material
    rows of an environment's particles, ``samples`` all lattice samples of sampled shapes, ``room`` the most contacts
    of one substep and environment, welds among them, ``band`` (m) the distance beyond touch at which a particle is
    looked at. ``welds`` are (particle, body, attachment), attachments from 0. ``thin`` are (collider, axis of the
    normal, its sign) of plates (``thin.py``).
    """

    dim: int
    envs: int
    partitions: int
    particles: int
    laws: int
    rows: int
    colliders: tuple[tuple[int, int], ...]
    samples: int
    room: int
    band: float
    welds: tuple[tuple[int, int, int], ...] = ()
    thin: tuple[tuple[int, int, int], ...] = ()

    @property
    def attachments(self) -> int:
        """Their number."""
        return 1 + max((attachment for _, _, attachment in self.welds), default=-1)


def _skin(name: str, unit: str, doc: str) -> Array:
    return Array(f"skin_{name}", (), "skin", "param", unit, doc, exclusive=True)


def declare(dim: int) -> tuple[Array, ...]:
    """All arrays but the pool."""
    v = ("dim",)

    def scratch(name: str, element: tuple, domain: str | tuple[str, ...], doc: str, dtype: str = "real") -> Array:
        return Array(name, element, domain, "scratch", "mixed", doc, dtype=dtype)

    return (
        Array("place", v, "collider", "param", "m", "origin of a collider, in the axes of its body", exclusive=True),
        Array("size", (4,), "collider", "param", "m", "sizes of a collider, see distance.py", exclusive=True),
        _skin("friction", "1", "Coulomb coefficient of a collider and a material row"),
        _skin("stiction", "m/s", "sliding speed below which friction falls off"),
        _skin("offset", "m", "distance of a particle at which it touches"),
        _skin("rate", "1/s", "share of penetration taken back per second"),
        _skin("cap", "m/s", "fastest separation that penetration asks for"),
        _skin("compliance", "m/N", "of a particle's contact; 0 is hard"),
        Array("weld_place", v, "weld", "param", "m", "of a welded particle from the centre of mass, body axes",
              exclusive=True),
        Array("weld_rate", (), "attachment", "param", "1/s", "share of the drift taken back per second",
              exclusive=True),
        Array("weld_cap", (), "attachment", "param", "m/s", "fastest way back", exclusive=True),
        scratch("weld", (2,), "welds", "body, attachment", "int"),
        scratch("weld_of", (), "particles", "weld of a particle, in body order; -1: none", "int"),
        scratch("weld_particle", (), "weld", "where the particle is in memory now", "int"),
        scratch("weld_at", (), ("slot", "weld"), "where it was in each slot", "int"),
        scratch("weld_after", v, ("slot", "weld"), "its velocity after the push, as ``after`` in the pool"),
        scratch("axes", (3, 3), "colliders", "axes of a collider in those of its body"),
        scratch("collider", (2,), "colliders", "kind, body", "int"),
        scratch("thin_of", (), "colliders", "its plate, -1 for none", "int"),
        scratch("thin", (3,), "plates", "collider, axis of the normal, its sign", "int"),
        scratch("sampling", (4,), "colliders", "first sample, nodes an axis", "int"),
        scratch("lattice_of", (4,), "colliders", "first node [m, collider axes], spacing [m]"),
        scratch("sample", (), "samples", "distances [m]"),
        scratch("frame", (3, 3), "collider", "axes of a collider in the world"),
        scratch("origin", (3,), "collider", "its origin in the world"),
        scratch("ball", (4,), "collider", "what a particle must be in to be near: centre, radius"),
        scratch("hull", (3,), "collider", "and the same along the axes of the collider: half widths"),
        scratch("found", (4,), "found", "near particles of each worker: particle, collider, how many, which", "int"),
        scratch("found_count", (), "law_worker", "their number", "int"),
        scratch("row", (19,), "room", "contacts of the substep, columns above"),
        scratch("row_body", (3,), "room", "their bodies (-1 for the world), material rows, particles", "int"),
        scratch("row_count", (), "env", "their number", "int"),
        scratch("span", (2,), ("slot", "env"), "first record and number of records in the pool", "int"),
        scratch("band", (), "one", "distance beyond touch at which a particle is looked at"),
        scratch("counts", (), "counts", "columns above", "int"),
        scratch("coupling_flag", (3,), "env", "kind, slot, number of contacts where there was no room", "int"),
    )


#: Contacts of all substeps of a segment: (particle, collider, contacts of the particle, rank among them), and at rank 0
#: the particle's velocity after contact (before it, while the state holds the one after).
POOL_ARRAYS = (
    Array("record", (4,), "pool", "scratch", "1", "particle, collider, contacts of the particle, rank", dtype="int"),
    Array("after", ("dim",), "pool", "scratch", "m/s", "velocity of the particle after contact"),
)


def domain_sizes(p: CouplingPlan, slots: int) -> dict[str, int]:
    """Sizes of all domains but the pool."""
    return {
        "collider": p.envs * len(p.colliders),
        "colliders": len(p.colliders),
        "plates": len(p.thin),
        "skin": p.envs * len(p.colliders) * p.rows,
        "samples": p.samples,
        "found": 2 * p.envs * p.particles,
        "law_worker": p.laws * p.envs * p.partitions,
        "room": p.envs * p.room,
        "weld": p.envs * len(p.welds),
        "welds": len(p.welds),
        "attachment": p.envs * p.attachments,
        "particles": p.particles,
        "env": p.envs,
        "slot": slots,
        "one": 1,
        "counts": 8,
    }


def footprint(plan: CouplingPlan, slots: int, pool: int) -> int:
    """Bytes the arrays take, with room for ``pool`` records an environment."""
    sizes = domain_sizes(plan, slots) | {"pool": plan.envs * pool}
    total = 0
    for a in declare(plan.dim) + POOL_ARRAYS:
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64))
        each = a.bytes_each("f64", plan.dim)
        total += count * each * (2 if a.role == "param" else 1)
    return total
