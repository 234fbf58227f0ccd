"""The kernel that runs scenes with joints forwards: one task per environment does a whole segment of steps.

It does what ``place`` and ``ready`` of ``tree_kernels`` do and then solves, in one launch instead of three a step. Each
function stands in it once, ``place_tree`` at the head of the loop: the poses of links in a slot come from the same
instructions wherever segments begin and end, so that they are the same to the last bit.
"""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import drift_joints, jointed
from taichi_sim.solvers.rigid.closure import Loop, place_loops
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.drive import Drive, place_rows
from taichi_sim.solvers.rigid.dynamics import tree_kick, weigh
from taichi_sim.solvers.rigid.geometry import orient
from taichi_sim.solvers.rigid.kernels import SPREAD
from taichi_sim.solvers.rigid.newton import solve
from taichi_sim.solvers.rigid.pose import place_tree
from taichi_sim.solvers.rigid.shapes import ContactTape, Shapes
from taichi_sim.solvers.rigid.step import drift, place_contacts
from taichi_sim.solvers.rigid.tree import Tree
from taichi_sim.solvers.rigid.twist import NOW

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)


@light_operator
@ti.kernel
def march(
    dim: ti.template(), met: ti.template(), loops: ti.template(), alone: ti.template(), position: A2, rotation: A2,
    velocity: A2, spin: A2, kick: A2, touching: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1,
    plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1, stiction: A1, gravity: A1, dt: A1,
    force: A2, torque: A2, turned: A1, arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1,
    contact: A1, contact_body: A1, taped: A2, taped_count: A2, grid_scale: A1, grid_place: A1, census: A1, shape: A1,
    pairing: A1, line: A1, point_body: A1, plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, bound: A1,
    sequence: A1, spot: A1, level: A1, settings: A1, extent: A1, flag: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1, joint_force: A2, composite: A1,
    composite_inertia: A1, factor: A1, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1, closure_axis: A1, closure_mount: A1,
    closure_stiffness: A1, closure_turning: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """Steps of slots ``k0 … k1``; ``substeps`` of them a frame. Flags are those of ``kernels.segment``."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    J = ti.static(jointed(T, loops, jacobian, row, L))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    tape = ti.static(ContactTape(taped, taped_count, flag, bound, sequence, dof, spot, level))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            h, k = dt[e], k0
            while k <= k1:
                place_tree(dim, T, e, k)
                if k < k1 and flag[e][0] == 0:
                    f = (start + k) // substeps
                    weigh(dim, T, e, k)
                    place_rows(T, D, e, k, f, kick[k, e], h)
                    if ti.static(loops):
                        place_loops(dim, T, L, e, k, h)
                    tree_kick(dim, T, e, f, 0.5 * (kick[k, e] + h))
                    orient(S, e)
                    taped_count[k, e] = ti.Vector([0, 0, 0])
                    detect(S, tape, e, k, h, settings[1])
                    place_contacts(S, e, k, h, friction, stiffness, damping, stiction, contact, contact_body, taped,
                                   taped_count)
                    count = taped_count[k, e][0]
                    converged, work = solve(dim, J, e, extent[0], e * extent[5], count, settings[0], settings[0],
                                            settings[2], dof, matrix, contact, contact_body, heft, inertia_world, (),
                                            ())
                    taped_count[k, e] = ti.Vector([count, work, ti.max(converged - 1, 0)])
                    fine = drift(dim, e, k, k + 1, h, NOW, extent, dof, contact, contact_body, taped_count, position,
                                 rotation, velocity, spin, touching, held)
                    drift_joints(J.tree, e, k, h)
                    if fine == 0:
                        flag[e] = ti.Vector([3, k, 0])
                    if converged == 0:
                        flag[e] = ti.Vector([1, k, count])
                    kick[k + 1, e] = h
                    k = k + 1
                else:
                    k = k1 + 1
