"""Contacts of shapes with faces, edges and rims: what lies on what, and where edges cross.

Two convex shapes are apart along the normal of a face, or along what is square to two crossing lines; the direction
along which they are farthest apart (overlap least) decides. On a face lie the vertices of the other shape, and six
points of a rim, the lowest first; on the face opposite, those of the first. Crossing lines touch where they cross;
where an edge crosses the border of the face it lies on, both say the same, and both act.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import (
    LINE_LINE,
    PARTS,
    POINT_LINE,
    POINT_PLANE,
    RIM_PLANE,
    SECTORS,
    rim_direction,
    unit,
)
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.shapes import (
    CORNERS,
    CYLINDER,
    EDGES,
    HULL,
    KIND,
    LINES,
    PLACES,
    PLANES,
    POINTS,
    SIDES,
)

#: Lines nearer to parallel than this sine do not cross: their ends touch. Caps whose axes are, lie side by side.
PARALLEL = 1e-2

#: Faces look against each other below this cosine.
AGAINST = -0.45


@ti.func
def emit(S: ti.template(), T: ti.template(), e, k, code, i, j, surface):
    """Put a contact on the tape; without room, raise the flag."""
    count = T.taped_count[k, e][0]
    if count < S.extent[5]:
        T.taped[k, e * S.extent[5] + count] = ti.Vector([code, i, j, surface])
        T.taped_count[k, e][0] = count + 1
    else:
        T.flag[e] = ti.Vector([2, k, S.extent[5]])


@ti.func
def spot(S: ti.template(), T: ti.template(), e, i):
    """Where a point is, world axes."""
    return T.spot[e * S.extent[1] + i]


@ti.func
def normal_of(S: ti.template(), e, q):
    """Normal of a plane, world axes."""
    f = S.face[e * S.extent[2] + q]
    return ti.Vector([f[0], f[1], f[2]])


@ti.func
def height(S: ti.template(), T: ti.template(), e, q, x):
    """Height of ``x`` over plane ``q``, m."""
    return normal_of(S, e, q).dot(x) - T.level[e * S.extent[2] + q]


@ti.func
def rim_spot(S: ti.template(), T: ti.template(), e, rim, part, n):
    """Where point ``part`` of a rim on a plane of normal ``n`` is."""
    l, end = rim // 2, rim % 2
    c, o = S.line[l][end], S.line[l][1 - end]
    u, _length = unit(S.arm[e * S.extent[1] + o] - S.arm[e * S.extent[1] + c])
    cosine, sine, out, _l, _ref, _tilted = rim_direction(u, n, part)
    return spot(S, T, e, c) + S.radius[e * S.extent[1] + c] * (cosine * out + sine * u.cross(out))


@ti.func
def lowest(S: ti.template(), T: ti.template(), e, s, n):
    """How low a capsule, a hull or a cylinder reaches along ``n``, m."""
    out = 1e30
    shrunk = 1.0
    if S.shape[s][KIND] == CYLINDER:
        l = S.shape[s][LINES]
        u, _length = unit(S.arm[e * S.extent[1] + S.line[l][1]] - S.arm[e * S.extent[1] + S.line[l][0]])
        shrunk = ti.sqrt(ti.max(0.0, 1.0 - u.dot(n) * u.dot(n)))
    for i in range(S.shape[s][POINTS], S.shape[s][POINTS] + S.shape[s][CORNERS]):
        out = ti.min(out, n.dot(spot(S, T, e, i)) - shrunk * S.radius[e * S.extent[1] + i])
    return out


@ti.func
def separate(S: ti.template(), T: ti.template(), e, a, b, reach, margin):
    """How far two shapes are apart along the normal of a face, that plane, and whose it is (0: a, 1: b). A tie goes to
    the face found first, and stays there under rounding."""
    gap, reference, owner = -1e30, -1, 0
    for turn in range(2):
        if gap <= reach:
            x, y = ti.select(turn == 0, a, b), ti.select(turn == 0, b, a)
            for q in range(S.shape[x][PLANES], S.shape[x][PLANES] + S.shape[x][SIDES]):
                n = normal_of(S, e, q)
                apart = lowest(S, T, e, y, n) - T.level[e * S.extent[2] + q]
                if apart > gap + ti.select(reference >= 0, 1e-2 * margin, 0.0):
                    gap, reference, owner = apart, q, turn
    return gap, reference, owner


@ti.func
def cross(S: ti.template(), T: ti.template(), e, k, a, b, surface, reach, margin, faces):
    """Contacts of crossing lines, unless faces hold the shapes farther apart (``faces``). Returns the largest distance.

    The crossing has to lie within both lines, and the edge of a hull has to be what reaches farthest along the normal.
    Which of two opposite normals it is follows from where the hull, or the other line, lies.
    """
    best = -1e30
    A, B = S.shape[a], S.shape[b]
    inside_a, inside_b = column3(T.bound, e * S.census[0] + a, 0), column3(T.bound, e * S.census[0] + b, 0)
    for i in range(A[LINES], A[LINES] + A[EDGES]):
        for j in range(B[LINES], B[LINES] + B[EDGES]):
            p, q = e * S.extent[1] + S.line[i][0], e * S.extent[1] + S.line[j][0]
            a1 = S.arm[e * S.extent[1] + S.line[i][1]] - S.arm[p]
            b1 = S.arm[e * S.extent[1] + S.line[j][1]] - S.arm[q]
            P, Q = spot(S, T, e, S.line[i][0]), spot(S, T, e, S.line[j][0])
            m, w = a1.cross(b1), P - Q
            square, long_a, long_b = m.norm_sqr(), ti.sqrt(a1.norm_sqr()), ti.sqrt(b1.norm_sqr())
            s, t = -w.dot(b1.cross(m)), -w.dot(a1.cross(m))
            crossing = square > (PARALLEL * long_a * long_b) ** 2
            crossing = crossing and s * long_a > margin * square and (square - s) * long_a > margin * square
            crossing = crossing and t * long_b > margin * square and (square - t) * long_b > margin * square
            if crossing:
                n = m / ti.sqrt(square)
                up = n.dot(w)
                if A[KIND] == HULL:
                    up = n.dot(inside_a - P)
                elif B[KIND] == HULL:
                    up = n.dot(Q - inside_b)
                elif ti.abs(up) < 1e-9:
                    up = n.dot(inside_a - inside_b)
                part = ti.select(up < 0.0, 1, 0)
                n = ti.select(up < 0.0, -1.0, 1.0) * n
                gap = n.dot(w) - S.radius[p] - S.radius[q]
                if gap <= reach and gap >= faces - 0.2 * margin:
                    for turn in range(2):
                        x, start = ti.select(turn == 0, a, b), ti.select(turn == 0, n.dot(P), -n.dot(Q))
                        if S.shape[x][KIND] == HULL:
                            if lowest(S, T, e, x, ti.select(turn == 0, 1.0, -1.0) * n) < start - 0.2 * margin:
                                crossing = False
                    if crossing:
                        best = ti.max(best, gap)
                        emit(S, T, e, k, LINE_LINE + PARTS * part, i, j, surface)
    return best


@ti.func
def covers(S: ti.template(), T: ti.template(), e, s, plane, x, margin):
    """Whether ``x`` is over the face of a hull, or the cap of a cylinder."""
    out = 1
    row = S.shape[s]
    n = normal_of(S, e, plane)
    if row[KIND] == HULL:
        for q in range(row[PLANES], row[PLANES] + row[SIDES]):
            if q != plane and n.dot(normal_of(S, e, q)) > -0.9 and height(S, T, e, q, x) > margin:
                out = 0
    else:
        p = row[POINTS]
        d = x - spot(S, T, e, p)
        d = d - n.dot(d) * n
        if ti.sqrt(d.norm_sqr()) > S.radius[e * S.extent[1] + p] + margin:
            out = 0
    return out


@ti.func
def face_manifold(S: ti.template(), T: ti.template(), e, k, a, b, surface, reach, margin, reference, owner):
    """Vertices and rims of the other shape over the face that holds them apart; and of this shape over the face of the
    other that looks against it."""
    mine, other = ti.select(owner == 0, a, b), ti.select(owner == 0, b, a)
    plane, going = reference, 1
    for _turn in range(2):
        if going == 1:
            n = normal_of(S, e, plane)
            row = S.shape[other]
            for c in range(ti.select(row[KIND] == HULL, row[CORNERS], 2 * SECTORS)):
                i, code, x = row[POINTS] + c, POINT_PLANE, n * 0.0
                if ti.static(S.rims):
                    if row[KIND] == CYLINDER:
                        i, code = 2 * row[LINES] + c // SECTORS, RIM_PLANE + PARTS * (c % SECTORS)
                        x = rim_spot(S, T, e, i, c % SECTORS, n)
                if row[KIND] == HULL:
                    x = spot(S, T, e, i)
                if height(S, T, e, plane, x) <= reach and covers(S, T, e, mine, plane, x, margin) == 1:
                    emit(S, T, e, k, code, i, plane, surface)
            best = AGAINST
            going = 0
            for q in range(row[PLANES], row[PLANES] + row[SIDES]):
                along = n.dot(normal_of(S, e, q))
                if along < best:
                    best, plane, going = along, q, 1
            swap = mine
            mine = other
            other = swap


@ti.func
def sides(S: ti.template(), T: ti.template(), e, k, a, b, surface, reach, margin, faces):
    """Vertices of a hull, or of another cylinder its rims or, where the two lie side by side, its ends, on the side of
    a cylinder; unless faces hold the shapes farther apart (``faces``)."""
    for turn in range(2):
        x, y = ti.select(turn == 0, a, b), ti.select(turn == 0, b, a)
        X, Y = S.shape[x], S.shape[y]
        if Y[KIND] == CYLINDER:
            l = Y[LINES]
            c = e * S.extent[1] + S.line[l][0]
            along, length = unit(S.arm[e * S.extent[1] + S.line[l][1]] - S.arm[c])
            first, count = X[POINTS], X[CORNERS]
            if X[KIND] == CYLINDER:
                axis, _other = unit(S.arm[e * S.extent[1] + S.line[X[LINES]][1]]
                                    - S.arm[e * S.extent[1] + S.line[X[LINES]][0]])
                if axis.cross(along).norm_sqr() > 25.0 * PARALLEL * PARALLEL:
                    first, count = first + 2, X[PLACES] - 2
            for i in range(first, first + count):
                d = spot(S, T, e, i) - spot(S, T, e, S.line[l][0])
                share = along.dot(d)
                far = ti.sqrt((d - share * along).norm_sqr()) - S.radius[c] - S.radius[e * S.extent[1] + i]
                if share > -margin and share < length + margin and far <= reach and far >= faces - 0.2 * margin:
                    emit(S, T, e, k, POINT_LINE, i, l, surface)
