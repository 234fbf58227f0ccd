"""Kernels that read a step again, from the tape and the slots at its ends: what contacts did in it.

They are launched when somebody asks, after the step: a run costs the same with and without them.
"""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import Joints
from taichi_sim.solvers.rigid.closure import Bond
from taichi_sim.solvers.rigid.events import DONE, EVENT, FLIGHT, IMPACT, piece_before, restore_flight
from taichi_sim.solvers.rigid.geometry import BIAS, DAMPING, FRICTION, STICTION, STIFF, column3, orient
from taichi_sim.solvers.rigid.impact import set_impact_law
from taichi_sim.solvers.rigid.kernels import A1, A2, SPREAD, freedoms_of
from taichi_sim.solvers.rigid.law import impulse
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.rotation import lift, lift_turn
from taichi_sim.solvers.rigid.shapes import Shapes
from taichi_sim.solvers.rigid.step import place_contacts, prepare
from taichi_sim.solvers.rigid.topology import LOOSE
from taichi_sim.solvers.rigid.tree import COUNT, KIND, Chain, freedom_of, joint_freedom, spread
from taichi_sim.solvers.rigid.twist import NOW, set_motion

#: Kernels of this file.
NAMES = ("press",)


@ti.func
def recall(dim: ti.template(), T: ti.template(), e, k, velocity: ti.template(), spin: ti.template()):
    """The velocities the step to slot ``k`` has solved for into NOW, with links where they stood before it (which
    ``place`` has left in levers and motions)."""
    for b in range(T.extent[0]):
        g, first = e * T.extent[0] + b, freedom_of(T, e, b)
        if T.link[b][KIND] == LOOSE:
            for i in ti.static(range(3 if dim == 2 else 6)):
                if ti.static(i < dim):
                    T.reduced[first + i, NOW] = velocity[k, g][i]
                else:
                    T.reduced[first + i, NOW] = spin[k, g][i - dim]
        else:
            for i in range(T.link[b][COUNT]):
                T.reduced[first + i, NOW] = T.rate[k, joint_freedom(T, e, b) + i]
    spread(dim, T, e, NOW, 0, NOW)


@light_operator
@ti.kernel
def press(
    dim: ti.template(), met: ti.template(), events: ti.template(), trees: ti.template(), loops: ti.template(),
    alone: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2, mass: A1, inertia: A1,
    centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1,
    stiction: A1, restitution: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1, arm: A1, face: A1,
    inertia_world: A1, heft: A1, dof: A2, contact: A1, contact_body: A1, taped: A2, taped_count: A2, chain: A2,
    piece: A2, flown: A2, pool: A1, event_settings: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1,
    pairing: A1, line: A1, point_body: A1, plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, extent: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, row: A1, bond: A1, closure: A1, push: A1, told: A1,
    envs: ti.i32, k: ti.i32, f: ti.i32, turn: ti.i32,
):
    """Contacts of the step from slot ``k`` into ``contact``, and the impulses they gave A into ``push``; ``told`` is
    the slot they are taped in and their number. ``turn`` counts the pieces of a step that impacts have split, from its
    end; of an environment that had fewer there are none. Links stand in slot ``k``."""
    J = ti.static(Joints(
        trees, loops,
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian),
        row, Bond(bond, closure)))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread_out in range(envs * SPREAD):
        if spread_out % SPREAD == 0:
            e = spread_out // SPREAD
            s, target, stage, rest, tau = k, k + 1, DONE, dt[e], 0.0 * dt[e]
            there = 1
            if ti.static(events):
                there = ti.select(turn <= 3 * chain[k, e][1], 1, 0)
                if there == 1:
                    s, target, stage, rest, tau = piece_before(e, k, turn, dt[e], chain, piece, pool)
            told[e] = ti.Vector([s, 0])
            if there == 1 and stage != EVENT:
                if ti.static(not trees):
                    prepare(dim, e, s, f, 0.0 * rest, extent[0], dof, position, rotation, velocity, spin, mass, inertia,
                            gravity, force, torque, held, turned, inertia_world, heft)
                orient(S, e)
                place_contacts(S, e, s, rest, friction, stiffness, damping, stiction, contact, contact_body, taped,
                               taped_count)
                count, share = taped_count[s, e][0], 1.0 + 0.0 * rest
                if ti.static(trees):
                    recall(dim, J.tree, e, target, velocity, spin)
                else:
                    for b in range(e * extent[0], (e + 1) * extent[0]):
                        set_motion(dim, dof, NOW, b * freedoms_of(dim), lift(dim, velocity[target, b]),
                                   lift_turn(dim, spin[target, b]))
                if ti.static(events):
                    if stage == IMPACT:
                        set_impact_law(dim, e, s, count, piece[target - pool[1], e][1], extent, dof, contact,
                                       contact_body, taped, heft, inertia_world, restitution, event_settings)
                    elif stage == FLIGHT:  # it has ended before the step it was solved for
                        share = (kick[s, e] + 2.0 * tau) / (kick[s, e] + rest)
                        restore_flight(dim, e, s, target - pool[1], extent[0], share, dof, velocity, spin, flown)
                for c in range(e * extent[5], e * extent[5] + count):
                    v = contact_motion(dim, dof, NOW, e, c, extent[0], contact, contact_body)
                    gamma, _gn = impulse(v, column3(contact, c, 0), contact[c][STIFF], contact[c][BIAS],
                                         contact[c][FRICTION], contact[c][DAMPING], contact[c][STICTION],
                                         taped_count[s, e][2], 0.0)
                    push[c] = share * gamma
                told[e] = ti.Vector([s, count])
