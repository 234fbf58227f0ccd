"""The arrays of the MPM solver, declared once; and the sizes of one compiled scene."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.core.store import MAX_ELEMENTS
from taichi_sim.solvers.mpm.order import BLOCK, PADDING
from taichi_sim.solvers.mpm.spline import NODE_MASK

#: Cells a particle may move between two sorts before it could touch a block that is not active.
MOST_DRIFT = 3.0


@dataclass(frozen=True)
class MpmPlan:
    """Sizes of one compiled scene, all decided before memory is touched.

    ``laws`` holds the functions of each law as kernels take them, ``law_ranges[l]`` the particles of law ``l`` in
    device order (local to an environment), ``periodic`` one flag an axis, ``plates`` the number of thin bodies.
    """

    dim: int
    spacing: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]
    envs: int
    partitions: int
    particles: int
    laws: tuple[tuple[Any, ...], ...]
    law_ranges: tuple[tuple[int, int], ...]
    rows: int
    groups: int
    fields: int
    contacts: int
    driven: bool
    driven_frames: int
    sort_every: int
    segment_mode: bool
    plates: int = 0

    @property
    def layers(self) -> int:
        """Layers of the grid: two where thin bodies keep matter on their sides apart (``layers.py``)."""
        return 2 if self.plates else 1

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells of the domain along each axis."""
        return tuple(round((hi - lo) / self.spacing) for lo, hi in zip(self.lower, self.upper, strict=True))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes along each axis: padding on both sides, rounded up to whole blocks."""
        return tuple(-(-(c + 1 + 2 * PADDING) // BLOCK) * BLOCK for c in self.cells)

    @property
    def nodes(self) -> int:
        """Nodes of one environment's grid."""
        return int(np.prod(self.sizes, dtype=np.int64))

    @property
    def blocks(self) -> int:
        """Blocks of one environment's grid."""
        return self.nodes // BLOCK**self.dim

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of a linear node index; the last axis is contiguous."""
        return tuple(int(np.prod(self.sizes[d + 1 :], dtype=np.int64)) for d in range(self.dim))

    @property
    def origin(self) -> np.ndarray:
        """Position of node 0, m."""
        return np.asarray(self.lower) - PADDING * self.spacing

    @property
    def workers(self) -> int:
        """Fixed shares of the work."""
        return self.envs * self.partitions

    def canonical_nodes(self) -> np.ndarray:
        """(nodes,) for every node the one it mirrors along periodic axes; itself elsewhere."""
        index = np.indices(self.sizes)
        for d in range(self.dim):
            if self.periodic[d]:
                index[d] = PADDING + (index[d] - PADDING) % self.cells[d]
        return np.ravel_multi_index(tuple(index), self.sizes).ravel()

    @property
    def periods(self) -> np.ndarray:
        """(dim,) length of the period along each axis, m; infinite along the others."""
        return np.where(self.periodic, np.subtract(self.upper, self.lower), np.inf)

    def wrapped(self, points: np.ndarray) -> np.ndarray:
        """Points (..., dim), m, taken back into the domain along periodic axes."""
        if not any(self.periodic):
            return points
        period = np.where(self.periodic, self.periods, 1.0)
        whole = np.where(self.periodic, np.floor((points - np.asarray(self.lower)) / period), 0.0)
        return points - whole * period

    def node_positions(self) -> np.ndarray:
        """(nodes, dim) positions of an environment's nodes, m."""
        axes = [self.origin[d] + self.spacing * np.arange(self.sizes[d]) for d in range(self.dim)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim)


_V, _M = ("dim",), ("dim", "dim")

STATE = (
    Array("x", _V, "particle", "state", "m", "position"),
    Array("v", _V, "particle", "state", "m/s", "velocity"),
    Array("C", _M, "particle", "state", "1/s", "affine velocity (APIC)"),
    Array("F", _M, "particle", "state", "1", "deformation gradient"),
)

PARAMETERS = (
    Array("material", (8,), "row", "param", "mixed", "rest volume [m^dim], mass [kg], six law coefficients"),
    Array("step", (2,), "env", "param", "mixed", "substep dt [s], velocity damping [1/s]"),
    Array("gravity", _V, "env", "param", "m/s²", "acceleration of everything"),
    Array("active_stress", _M, "group", "input", "Pa", "active second Piola-Kirchhoff stress of an actuated group"),
    Array("active_acceleration", _V, "group", "input", "m/s²", "body acceleration of an actuated group"),
    Array("particle_acceleration", _V, ("push", "driven"), "param", "m/s²", "external, per particle", exclusive=True),
    Array("field_gain", (), "field", "input", "1", "factor of a force field"),
    Array("contact_normal", _V, "contact", "param", "1", "outward normal at a node", exclusive=True),
    Array("contact_alpha", (), "contact", "param", "1", "weight of a contact, 0 … 1", exclusive=True),
    Array("contact_friction", (), "contact", "param", "1", "Coulomb coefficient", exclusive=True),
)

SCRATCH = (
    Array("id", (), ("order", "particle"), "scratch", "1", "particle in body order, a row an order", dtype="int"),
    Array("permutation", (), ("order", "particle"), "scratch", "1", "place before the sort", dtype="int"),
    Array("tag", (2,), "body_particle", "scratch", "1", "material row and actuated group", dtype="int"),
    Array("field_acceleration", _V, "field_node", "scratch", "m/s²", "force fields sampled at the nodes"),
    Array("contact_head", (), "env_node", "scratch", "1", "first contact of a node, -1 for none", dtype="int"),
    Array("contact_next", (), "contact", "scratch", "1", "next contact of the node", dtype="int"),
    Array("contact_kind", (), "contact", "scratch", "1", "sticky, slip, separate", dtype="int"),
    Array("copies", (4,), "copy_node", "scratch", "kg m/s, kg", "private sums of momentum and mass"),
    Array("velocity", (4,), "layer_node", "scratch", "m/s, kg", "grid velocity"),
    Array("grid_bar", (4,), "layer_node", "scratch", "-", "adjoint of grid momentum and mass"),
    Array("saved", (4,), "saved_node", "scratch", "kg m/s, kg", "active grid of every substep in a segment"),
    Array("blocks", (), ("order", "env_block"), "scratch", "1", "active blocks, packed coordinates", dtype="int"),
    Array("block_count", (), ("order", "env"), "scratch", "1", "number of active blocks", dtype="int"),
    Array("key", (), "particle", "scratch", "1", "sort key", dtype="int"),
    Array("tally", (), "tally", "scratch", "1", "particles in a block", dtype="int"),
    Array("mark", (), "tally", "scratch", "1", "block is active", dtype="int"),
    Array("x_moved", _V, "particle", "scratch", "m", "room for sorting"),
    Array("v_moved", _V, "particle", "scratch", "m/s", "room for sorting"),
    Array("C_moved", _M, "particle", "scratch", "1/s", "room for sorting"),
    Array("F_moved", _M, "particle", "scratch", "1", "room for sorting"),
    Array("colour", (), ("colour_slot", "coloured"), "scratch", "1", "sides of plates, see layers.py", dtype="int"),
    Array("colour_moved", (), "coloured", "scratch", "1", "room for sorting", dtype="int"),
    Array("plate", (4,), "plate", "scratch", "m, 1", "origins, axes and half widths of plates, see layers.py"),
    Array("lattice", (), "lattice", "scratch", "m", "spacing, its inverse, mass floor, origin, period, lower bound"),
    Array("extent", (), "extent", "scratch", "1", "sizes, strides, counts", dtype="int"),
    Array("work", (), "work", "scratch", "1", "first and last particle of every law and worker", dtype="int"),
    Array("flag", (), ("worker", "flag"), "scratch", "1", "kind, slot, place of the first bad particle", dtype="int"),
    Array("speed", (), "worker", "scratch", "m/s", "fastest component since the last sort"),
)


def domain_sizes(p: MpmPlan, slots: int, saved_nodes: int) -> dict[str, int]:
    """Sizes of all domains. ``slots`` states, ``saved_nodes`` active nodes kept beside one whole grid."""
    return {
        "particle": p.envs * p.particles,
        "body_particle": p.particles,
        "driven": p.envs * p.particles if p.driven else 1,
        "push": p.driven_frames if p.driven else 1,
        "row": p.envs * p.rows,
        "env": p.envs,
        "group": p.envs * p.groups,
        "field": p.envs * max(1, p.fields),
        "field_node": p.fields * p.nodes,
        "contact": p.contacts,
        "env_node": p.envs * p.nodes,
        "layer_node": p.envs * p.nodes * p.layers,
        "copy_node": p.workers * p.nodes * p.layers,
        "saved_node": p.envs * p.nodes * p.layers + saved_nodes,
        "colour_slot": slots if p.plates else 1,
        "coloured": p.envs * p.particles if p.plates else 1,
        "plate": 4 * p.envs * p.plates,
        "order": max(0, slots - 1) // p.sort_every + 4,
        "env_block": p.envs * p.blocks,
        "tally": p.envs * (p.blocks + 1),
        "lattice": 12,
        "extent": 12,
        "work": 2 * p.workers * len(p.laws),
        "worker": p.workers,
        "flag": 4,
    }


def footprint(plan: MpmPlan, precision: str, frames: int, slots: int, saved_nodes: int) -> int:
    """Bytes the solver's arrays will take."""
    sizes = domain_sizes(plan, slots, saved_nodes)
    total = 0
    for a in STATE + PARAMETERS + SCRATCH:
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64))
        each = a.bytes_each(precision, plan.dim)
        lead = {"state": slots, "input": frames}.get(a.role, 1)
        total += lead * count * each
        if a.role == "state":
            total += count * each
        elif a.role in ("param", "input"):
            wide = 2 if precision == "f32" else 1
            total += lead * count * each * wide * (1 if a.exclusive else plan.partitions)
    return total


def longest_segment(plan: MpmPlan, stored_nodes: int) -> int:
    """Most substeps of a segment that 32-bit indices can address, ``stored_nodes`` active nodes a substep."""
    state = MAX_ELEMENTS // (plan.envs * plan.particles * plan.dim**2) - 2
    return max(1, min(state, (NODE_MASK - plan.envs * plan.nodes * plan.layers) // stored_nodes))
