"""Which contacts there are in a step: pairs of shapes whose spheres come near, then their features.

Spheres around shapes, as large as they may move in the step, are swept along the axis on which they are spread widest
(their order is kept from step to step, and is unique, so that no result depends on it). What is near goes through
``nearest`` (points of one shape beside the other) and ``manifold`` (faces, edges and rims), each in the text once.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import PARTS, POINT_PLANE, RIM_PLANE, SECTORS
from taichi_sim.solvers.rigid.geometry import moves, place
from taichi_sim.solvers.rigid.manifold import cross, emit, face_manifold, normal_of, rim_spot, separate, sides, spot
from taichi_sim.solvers.rigid.nearest import nearest
from taichi_sim.solvers.rigid.shapes import (
    BALL,
    BODY,
    CAPSULE,
    CORNERS,
    CYLINDER,
    HULL,
    KIND,
    LARGE,
    LATTICE,
    LINES,
    MESH,
    PLACES,
    PLANES,
    POINTS,
)
from taichi_sim.solvers.rigid.twist import BEFORE, FREE, body_motion


@ti.func
def set_out(S: ti.template(), T: ti.template(), e, k):
    """Points and planes in the world, where all of detection takes them from."""
    for i in range(S.extent[1]):
        p = e * S.extent[1] + i
        T.spot[p] = S.arm[p] + place(S.dim, S.position, k, e, S.point_body[i], S.extent[0])
    for j in range(S.extent[2]):
        p = e * S.extent[2] + j
        f = S.face[p]
        x = place(S.dim, S.position, k, e, S.plane_body[j], S.extent[0])
        T.level[p] = f[3] + f[0] * x[0] + f[1] * x[1] + f[2] * x[2]


@ti.func
def travel(dim: ti.template(), e, body, bodies, size, dof: ti.template()):
    """Bound of the speed of a point at most ``size`` from a body's centre of mass, before and after the kick, m/s."""
    freedoms = ti.static(3 if dim == 2 else 6)
    out = 0.0
    if body >= 0:
        v, w = body_motion(dim, dof, BEFORE, (e * bodies + body) * freedoms)
        u, q = body_motion(dim, dof, FREE, (e * bodies + body) * freedoms)
        speed = ti.sqrt(ti.max(v.norm_sqr(), u.norm_sqr()))
        out = speed + size * ti.sqrt(ti.max(w.norm_sqr(), q.norm_sqr()))
    return out


@ti.func
def enclose(S: ti.template(), T: ti.template(), e, k, dt, margin):
    """Spheres around the shapes: centre 0-2 (world), radius 3, reach 4 (how far the shape looks: half the margin and
    twice what it may move in a step). Returns the axis along which they are spread widest."""
    first, second = ti.Vector([0.0, 0.0, 0.0]), ti.Vector([0.0, 0.0, 0.0])
    for s in range(S.census[0]):
        middle = ti.Vector([0.0, 0.0, 0.0])
        row = S.shape[s]
        for i in range(row[POINTS], row[POINTS] + row[CORNERS]):
            middle = middle + T.spot[e * S.extent[1] + i] / row[CORNERS]
        size = 0.0
        for i in range(row[POINTS], row[POINTS] + row[PLACES]):
            p = e * S.extent[1] + i
            size = ti.max(size, ti.sqrt((T.spot[p] - middle).norm_sqr()) + S.radius[p])
        reach = 0.5 * margin
        if moves(S, row[BODY]) == 1:
            lever = middle - place(S.dim, S.position, k, e, row[BODY], S.extent[0])
            reach = reach + 2.0 * dt * travel(S.dim, e, row[BODY], S.extent[0],
                                              size + ti.sqrt(lever.norm_sqr()), T.dof)
        T.bound[e * S.census[0] + s] = ti.Vector([middle[0], middle[1], middle[2], size, reach])
        first = first + middle
        second = second + middle * middle
    spread = second - first * first / ti.max(1, S.census[0])
    axis = 0
    for d in ti.static(range(1, 3)):
        if spread[d] > spread[axis]:
            axis = d
    return axis


@ti.func
def lower_end(S: ti.template(), T: ti.template(), e, s, axis):
    """Where the sphere of a shape begins on an axis."""
    b = T.bound[e * S.census[0] + s]
    return b[axis] - b[3] - b[4]


@ti.func
def arrange(S: ti.template(), T: ti.template(), e, axis):
    """Sort the shapes by where their spheres begin (ties by number), starting from the order of the step before."""
    first = e * S.census[0]
    for i in range(1, S.census[0]):
        s = T.sequence[first + i]
        key = lower_end(S, T, e, s, axis)
        j = i - 1
        looking = 1
        while looking == 1:
            looking = 0
            if j >= 0:
                other = T.sequence[first + j]
                end = lower_end(S, T, e, other, axis)
                if end > key or (end == key and other > s):
                    T.sequence[first + j + 1] = other
                    j = j - 1
                    looking = 1
        T.sequence[first + j + 1] = s


@ti.func
def meet(S: ti.template(), T: ti.template(), e, k, a, b, surface, reach, margin):
    """All contacts of two shapes."""
    for turn in range(2):
        x, y = ti.select(turn == 0, a, b), ti.select(turn == 0, b, a)
        X, Y = S.shape[x][KIND], S.shape[y][KIND]
        first, count = S.shape[x][POINTS], 0
        if X == BALL and (Y != BALL or turn == 0):
            count = 1
        elif X == CAPSULE and Y != BALL:
            count = S.shape[x][ti.select(Y == CAPSULE, CORNERS, PLACES)]
        elif X == HULL and (Y == CAPSULE or Y == MESH):
            count = S.shape[x][ti.select(Y == CAPSULE, CORNERS, PLACES)]
        elif X == CYLINDER and (Y == CAPSULE or Y == MESH):
            first, count = first + 2, S.shape[x][PLACES] - 2
        elif X == MESH:
            count = S.shape[x][PLACES]
        if ti.static(S.meets((BALL,), (MESH,))):
            if (X == BALL and Y == MESH) or (X == MESH and Y == BALL):
                j = S.shape[ti.select(X == MESH, x, y)][LATTICE]
                spacing = S.lattice[j][3] * S.grid_scale[e * S.census[3] + j]
                size = S.radius[e * S.extent[1] + S.shape[ti.select(X == BALL, x, y)][POINTS]]
                if ti.select(size > LARGE * spacing, BALL, MESH) == X:
                    count = 0
        around = T.bound[e * S.census[0] + y]
        for i in range(first, first + count):
            r = S.radius[e * S.extent[1] + i]
            away = spot(S, T, e, i) - ti.Vector([around[0], around[1], around[2]])
            limit = around[3] + reach + r
            if away.norm_sqr() <= limit * limit:
                nearest(S, T, e, k, i, r, y, surface, reach)
    if ti.static(S.flat or S.crossing):
        X, Y = S.shape[a][KIND], S.shape[b][KIND]
        if 1 <= X and X <= 3 and 1 <= Y and Y <= 3:
            gap, reference, owner = separate(S, T, e, a, b, reach, margin)
            if gap <= reach:
                edges = -1e30
                if ti.static(S.crossing):
                    edges = cross(S, T, e, k, a, b, surface, reach, margin, gap)
                if X != CAPSULE and Y != CAPSULE and gap >= edges - 0.2 * margin:
                    if ti.static(S.faces):
                        face_manifold(S, T, e, k, a, b, surface, reach, margin, reference, owner)
                    if ti.static(S.sides):
                        sides(S, T, e, k, a, b, surface, reach, margin, gap)


@ti.func
def lie(S: ti.template(), T: ti.template(), e, k, s, wall, surface, reach):
    """Contacts of a shape with a half-space: its ends, vertices, or the lowest points of its rims."""
    j = S.shape[wall][PLANES]
    n, offset = normal_of(S, e, j), T.level[e * S.extent[2] + j]
    b = T.bound[e * S.census[0] + s]
    if n.dot(ti.Vector([b[0], b[1], b[2]])) - b[3] - offset <= reach:
        row = S.shape[s]
        count = row[CORNERS]
        if row[KIND] == CYLINDER:
            count = 2 * SECTORS
        for c in range(count):
            i, code, r = row[POINTS] + c, POINT_PLANE, 0.0
            x = n * 0.0
            if ti.static(S.rims):
                if row[KIND] == CYLINDER:
                    i, code = 2 * row[LINES] + c // SECTORS, RIM_PLANE + PARTS * (c % SECTORS)
                    x = rim_spot(S, T, e, i, c % SECTORS, n)
            if row[KIND] != CYLINDER:
                x = spot(S, T, e, i)
                r = S.radius[e * S.extent[1] + i]
            if n.dot(x) - offset - r <= reach:
                emit(S, T, e, k, code, i, j, surface)


@ti.func
def detect(S: ti.template(), T: ti.template(), e, k, dt, margin):
    """Put on the (empty) tape of slot ``k`` every contact whose gap is below ``margin + 2 h |v|``.

    The speed is the larger one before and after the kick. One contact too many costs time only: the law gives it no
    impulse. A body made faster than that by a blow in the same step meets what it then reaches one step later.
    """
    bounded, all_shapes = S.census[0], S.census[1]
    set_out(S, T, e, k)
    axis = enclose(S, T, e, k, dt, margin)
    for w in range(bounded, all_shapes):
        for s in range(bounded):
            surface = S.pairing[s * all_shapes + w]
            if surface >= 0:
                lie(S, T, e, k, s, w, surface, 0.5 * margin + T.bound[e * bounded + s][4])
    if ti.static(len(S.targets) > 0 or S.flat or S.crossing):
        arrange(S, T, e, axis)
        for i in range(bounded):
            s = T.sequence[e * bounded + i]
            mine = T.bound[e * bounded + s]
            end = mine[axis] + mine[3] + mine[4]
            j = i + 1
            while j < bounded:
                t = T.sequence[e * bounded + j]
                other = T.bound[e * bounded + t]
                if other[axis] - other[3] - other[4] > end:
                    j = bounded
                else:
                    away = ti.Vector([mine[0] - other[0], mine[1] - other[1], mine[2] - other[2]])
                    reach = mine[4] + other[4]
                    limit = mine[3] + other[3] + reach
                    surface = S.pairing[s * all_shapes + t]
                    if surface >= 0 and away.norm_sqr() <= limit * limit:
                        meet(S, T, e, k, ti.max(s, t), ti.min(s, t), surface, reach, margin)
                j = j + 1
