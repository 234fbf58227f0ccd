"""Which contacts there are in a step: candidates whose gap may close within it go on the tape."""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.arrays import BOX_BOX, POINT_EDGE, POINT_PLANE, POINT_POINT
from taichi_sim.solvers.rigid.geometry import locate, place
from taichi_sim.solvers.rigid.twist import BEFORE, FREE, body_motion


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
def emit(e, k, kind, i, j, surface, extent: ti.template(), taped: ti.template(), taped_count: ti.template(),
         flag: ti.template()):
    """Put a contact on the tape; without room, raise the flag."""
    count = taped_count[k, e][0]
    if count < extent[5]:
        taped[k, e * extent[5] + count] = ti.Vector([kind, i, j, surface])
        taped_count[k, e][0] = count + 1
    else:
        flag[e] = ti.Vector([2, k, extent[5]])


@ti.func
def above(dim: ti.template(), e, k, j, B, i, A, extent: ti.template(), position: ti.template(), arm: ti.template(),
          face: ti.template()):
    """Height of point ``i`` of A over plane ``j`` of B, m."""
    f = face[e * extent[2] + j]
    x = place(dim, position, k, e, A, extent[0]) - place(dim, position, k, e, B, extent[0]) + arm[e * extent[1] + i]
    return f[0] * x[0] + f[1] * x[1] + f[2] * x[2] - f[3]


@ti.func
def detect_boxes(dim: ti.template(), e, k, a, b, surface, dt, margin, extent: ti.template(), dof: ti.template(),
                 position: ti.template(), arm: ti.template(), face: ti.template(), point_body: ti.template(),
                 box: ti.template(), taped: ti.template(), taped_count: ti.template(), flag: ti.template()):
    """Two boxes touch at the vertices of either that lie over a face of the other.

    The reference face is the one with the largest separation (separating axes, faces only: two crossed edges meet
    without being seen). Against it go the vertices of the other box; against that box's face opposite, its own.
    """
    corners, sides = ti.static(2**dim), ti.static(2 * dim)
    reference, gap, owner = 0, -1e30, 0
    reach = margin
    for turn in range(2):
        first = ti.select(turn == 0, a, b)
        body = point_body[box[first][0]]
        size = 2.0 * ti.sqrt(arm[e * extent[1] + box[first][0]].norm_sqr())
        reach = reach + 2.0 * dt * travel(dim, e, body, extent[0], size, dof)
    for turn in range(2):
        if gap <= reach:
            first, second = ti.select(turn == 0, a, b), ti.select(turn == 0, b, a)
            B, A = point_body[box[first][0]], point_body[box[second][0]]
            for side in range(sides):
                lowest = 1e30
                for corner in range(corners):
                    lowest = ti.min(lowest, above(
                        dim, e, k, box[first][1] + side, B, box[second][0] + corner, A, extent, position, arm,
                        face))
                # a tie goes to the face found first, and stays there under rounding
                if lowest > gap + ti.select(gap > -1e29, 1e-2 * margin, 0.0):
                    gap = lowest
                    reference = side
                    owner = turn
    if gap <= reach:
        mine, other = ti.select(owner == 0, a, b), ti.select(owner == 0, b, a)
        for _turn in range(2):
            B, A = point_body[box[mine][0]], point_body[box[other][0]]
            for corner in range(corners):
                inside = 1
                height = 0.0
                for side in range(sides):
                    h = above(dim, e, k, box[mine][1] + side, B, box[other][0] + corner, A, extent, position, arm,
                              face)
                    if side == reference:
                        height = h
                    elif side // 2 != reference // 2 and h > margin:
                        inside = 0
                if inside == 1 and height <= reach:
                    emit(e, k, POINT_PLANE, box[other][0] + corner, box[mine][1] + reference, surface, extent, taped,
                         taped_count, flag)
            # the face of the other box that looks against the reference, and the same with exchanged roles
            looks = face[e * extent[2] + box[mine][1] + reference]
            best = 1e30
            for side in range(sides):
                against = face[e * extent[2] + box[other][1] + side]
                along = looks[0] * against[0] + looks[1] * against[1] + looks[2] * against[2]
                if along < best:
                    best = along
                    reference = side
            swap = mine
            mine = other
            other = swap


@ti.func
def detect_point_box(dim: ti.template(), e, k, i, b, surface, reach, extent: ti.template(), position: ti.template(),
                     radius: ti.template(), arm: ti.template(), face: ti.template(), point_body: ti.template(),
                     box: ti.template(), taped: ti.template(), taped_count: ti.template(), flag: ti.template()):
    """A sphere touches the face it is over, or the nearest edge or vertex."""
    corners, sides = ti.static(2**dim), ti.static(2 * dim)
    A, B = point_body[i], point_body[box[b][0]]
    gap, nearest_side, outside, along = -1e30, 0, 0, 3
    for side in range(sides):
        h = above(dim, e, k, box[b][1] + side, B, i, A, extent, position, arm, face)
        if h > 0.0:
            outside = outside + 1
            along = along - side // 2
        if h > gap:
            gap = h
            nearest_side = side
    if gap - radius[e * extent[1] + i] <= reach:
        if outside < 2:
            emit(e, k, POINT_PLANE, i, box[b][1] + nearest_side, surface, extent, taped, taped_count, flag)
        else:
            nearest, at = 1e30, 0
            x = place(dim, position, k, e, A, extent[0]) - place(dim, position, k, e, B, extent[0])
            for corner in range(corners):
                away = x + arm[e * extent[1] + i] - arm[e * extent[1] + box[b][0] + corner]
                if away.norm_sqr() < nearest:
                    nearest = away.norm_sqr()
                    at = corner
            kind = POINT_POINT
            if outside < dim:  # two of three axes: the edge along the third
                kind = POINT_EDGE + box[b][1] + 2 * along + 1
            emit(e, k, kind, i, box[b][0] + at, surface, extent, taped, taped_count, flag)


@ti.func
def detect(dim: ti.template(), boxes: ti.template(), e, k, dt, margin, extent: ti.template(), dof: ti.template(),
           position: ti.template(), radius: ti.template(), arm: ti.template(), face: ti.template(),
           point_body: ti.template(), plane_body: ti.template(), box: ti.template(), candidate: ti.template(),
           taped: ti.template(), taped_count: ti.template(), flag: ti.template()):
    """Put on the tape of slot ``k`` every contact whose gap is below ``margin + 2 h |v|``.

    The speed is the larger one before and after the kick. One contact too many costs time only: the law gives it no
    impulse. A body made faster than that by a blow in the same step meets what it then reaches one step later.
    """
    for c in range(extent[4]):
        kind, i, j, surface = candidate[c][0], candidate[c][1], candidate[c][2], candidate[c][3]
        if kind == POINT_PLANE or kind == POINT_POINT:
            A = point_body[i]
            B = -1
            if kind == POINT_PLANE:
                B = plane_body[j]
            else:
                B = point_body[j]
            _n, arm_a, arm_b, gap = locate(dim, e, k, kind, i, j, A, B, extent, position, radius, arm,
                                           face)
            speed = travel(dim, e, A, extent[0], ti.sqrt(arm_a.norm_sqr()), dof)
            speed = speed + travel(dim, e, B, extent[0], ti.sqrt(arm_b.norm_sqr()), dof)
            if gap <= margin + 2.0 * dt * speed:
                emit(e, k, kind, i, j, surface, extent, taped, taped_count, flag)
        elif ti.static(boxes):
            if kind == BOX_BOX:
                detect_boxes(dim, e, k, i, j, surface, dt, margin, extent, dof, position, arm, face,
                             point_body, box, taped, taped_count, flag)
            else:
                A, B = point_body[i], point_body[box[j][0]]
                size = 2.0 * ti.sqrt(arm[e * extent[1] + box[j][0]].norm_sqr())
                speed = travel(dim, e, A, extent[0], radius[e * extent[1] + i], dof)
                speed = speed + travel(dim, e, B, extent[0], size, dof)
                detect_point_box(dim, e, k, i, j, surface, margin + 2.0 * dt * speed, extent, position, radius,
                                 arm, face, point_body, box, taped,
                                 taped_count, flag)
