"""Thin bodies: where the layers of the grid are two, and on which side of them a particle is.

A *plate* is a box collider whose thinnest side is less than a stencil of the grid. Its mid-surface is given to the MPM
solver (``solvers/mpm/layers.py``), which remembers on which side every near particle came. Contact goes by the same
side: a particle that was pressed beyond the mid-surface is still pushed back to where it came from, not on to the
nearest face. Seen from its side a plate is the half-space behind that face, ``phi = e.y - half``, within the extent of
the plate; beside it, and before the face, the box that it is.
"""

from typing import Any, NamedTuple

from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import COLLIDERS
from taichi_sim.solvers.mpm.layers import REACH
from taichi_sim.solvers.rigid.kernels import A1, A2
from taichi_sim.solvers.rigid.rotation import lift, rotation_matrix
from taichi_sim.solvers.shapes.samples import BEYOND


class Sides(NamedTuple):
    """Plates (0: none, and no code for them) and the colours of particles. ``thin_of`` a collider's plate or -1,
    ``thin`` a plate's collider, the axis of its normal, and the normal's sign."""

    plates: int
    thin_of: Any
    thin: Any
    colour: Any


@ti.func
def unit(axis, s):
    """``s`` times a unit vector."""
    return ti.Vector([ti.select(axis == 0, s, 0.0), ti.select(axis == 1, s, 0.0), ti.select(axis == 2, s, 0.0)])


@ti.func
def own_axis(sides: ti.template(), c, k, p):
    """Outward normal, in the axes of collider ``c``, of the face on the side of particle ``p`` of slot ``k``; 0 where
    ``c`` is no plate or the particle is not near."""
    e = unit(0, 0.0)
    j = sides.thin_of[c]
    if j >= 0:
        colour = sides.colour[k, p]
        if (colour >> (1 + 2 * j)) & 1 == 1:
            e = unit(sides.thin[j][1], ti.cast(sides.thin[j][2] * (2 * ((colour >> (2 + 2 * j)) & 1) - 1), float))
    return e


@ti.func
def behind(e, size, y):
    """Distance from the face with the normal ``e``, and whether the place ``y`` is behind that within the extent."""
    half = ti.Vector([size[0], size[1], size[2]])
    out = ti.abs(y) - half + size[3] - 2.0 * BEYOND * ti.abs(e)
    depth = e.dot(y) - ti.abs(e).dot(half)
    return depth, ti.select(e.norm_sqr() > 0.5 and depth < 0.0 and out.max() < 0.0, 1, 0)


@ti.func
def on_own_side(e, size, y):
    """``y`` as far as :func:`shape_distance_adjoint` looks at it: on which side of the middle it is."""
    _depth, is_behind = behind(e, size, y)
    return ti.select(is_behind == 1, y * (1.0 - ti.abs(e)) + e, y)


@ti.kernel
def part(
    dim: ti.template(), plates: ti.template(), position: A2, rotation: A2, centre: A1, place: A1, size: A1, axes: A1,
    collider: A1, thin: A1, counts: A1, extent: A1, mpm_lattice: A1, mpm_plate: A1, envs: ti.i32, k: ti.i32,
):  # fmt: skip
    """Where the plates of slot ``k`` are."""
    for i in range(envs * plates):
        e, c = i // plates, thin[i % plates][0]
        at, b = e * counts[COLLIDERS] + c, collider[c][1]
        R, o = ti.Matrix.identity(float, 3), lift(dim, place[at])
        if b >= 0:
            body = e * extent[0] + b
            R = rotation_matrix(dim, rotation[k, body])
            o = lift(dim, position[k, body]) + R @ (o - lift(dim, centre[body]))
        F = R @ axes[c]
        mpm_plate[4 * i] = ti.Vector([o[0], o[1], o[2], 0.0])
        for d in ti.static(range(dim)):
            axis = (thin[i % plates][1] + d) % dim
            half = size[at][axis]
            n = F @ unit(axis, 1.0)
            if ti.static(d == 0):
                half = REACH * mpm_lattice[0]
                n = n * thin[i % plates][2]
            mpm_plate[4 * i + 1 + d] = ti.Vector([n[0], n[1], n[2], half])
