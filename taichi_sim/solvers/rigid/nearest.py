"""The feature of a shape that a sphere is nearest to."""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import POINT_GRID, POINT_LINE, POINT_PLANE, POINT_POINT, POINT_RIM
from taichi_sim.solvers.rigid.geometry import on_lattice, place
from taichi_sim.solvers.rigid.manifold import emit, height, normal_of, spot
from taichi_sim.solvers.rigid.shapes import (
    BALL,
    BODY,
    CAPSULE,
    CORNERS,
    CYLINDER,
    EDGES,
    HULL,
    KIND,
    LATTICE,
    LINES,
    MESH,
    PLANES,
    POINTS,
    SIDES,
)


@ti.func
def nearest_on_line(S: ti.template(), T: ti.template(), e, x, l):
    """Distance of ``x`` from a line with ends; 0 where it is nearest to the first end, 1 between, 2 the second."""
    start, end = spot(S, T, e, S.line[l][0]), spot(S, T, e, S.line[l][1])
    along = end - start
    share = (x - start).dot(along) / along.norm_sqr()
    where = ti.select(share <= 0.0, 0, ti.select(share >= 1.0, 2, 1))
    return ti.sqrt((x - start - ti.min(ti.max(share, 0.0), 1.0) * along).norm_sqr()), where


@ti.func
def nearest(S: ti.template(), T: ti.template(), e, k, i, r, s, surface, reach):
    """Put the contact of point ``i`` of radius ``r`` with the nearest feature of shape ``s`` on the tape.

    Outside a hull, the face over which the point is, or the nearest edge or vertex; inside, the nearest face. So the
    normal turns about edges, it does not jump, as long as the centre stays outside.
    """
    row = S.shape[s]
    x = spot(S, T, e, i)
    code, j, gap = POINT_POINT, row[POINTS], 1e30
    if ti.static(BALL in S.targets):
        if row[KIND] == BALL:
            gap = ti.sqrt((x - spot(S, T, e, j)).norm_sqr()) - S.radius[e * S.extent[1] + j]
    if ti.static(HULL in S.targets or CYLINDER in S.targets):
        if row[KIND] == HULL or row[KIND] == CYLINDER:
            gap, code = -1e30, POINT_PLANE
            for q in range(row[PLANES], row[PLANES] + row[SIDES]):
                h = height(S, T, e, q, x)
                if h > gap:
                    gap, j = h, q
            over = 1
            if gap > 0.0 and row[KIND] == HULL:  # the face it is highest over, if it is over it
                foot = x - gap * normal_of(S, e, j)
                for q in range(row[PLANES], row[PLANES] + row[SIDES]):
                    if q != j and height(S, T, e, q, foot) > 0.0:
                        over = 0
            if over == 0 and gap - r <= reach:
                gap = 1e30
                for c in range(row[POINTS], row[POINTS] + row[CORNERS]):
                    far = ti.sqrt((x - spot(S, T, e, c)).norm_sqr())
                    if far < gap:
                        gap, j, code = far, c, POINT_POINT
    if ti.static(CYLINDER in S.targets):
        if row[KIND] == CYLINDER:
            u, _length = axis_of(S, e, row[LINES])
            start = x - spot(S, T, e, row[POINTS])
            h = u.dot(start)
            wide = ti.sqrt((start - h * u).norm_sqr()) - S.radius[e * S.extent[1] + row[POINTS]]
            if gap > 0.0 and wide > 0.0:
                code, j, gap = POINT_RIM, 2 * row[LINES] + ti.select(h > 0.0, 1, 0), ti.sqrt(gap * gap + wide * wide)
            elif wide > gap:
                code, j, gap = POINT_LINE, row[LINES], wide
    if ti.static(CAPSULE in S.targets or (HULL in S.targets and S.dim == 3)):
        # the line of a capsule; or edges of a hull, where one is nearer than the nearest vertex
        if row[KIND] == CAPSULE or (row[KIND] == HULL and code == POINT_POINT):
            for l in range(row[LINES], row[LINES] + row[EDGES]):
                far, where = nearest_on_line(S, T, e, x, l)
                far = far - S.radius[e * S.extent[1] + S.line[l][0]]
                if row[KIND] == CAPSULE or (far < gap and where == 1):
                    gap, code, j = far, POINT_LINE, l
                    if where != 1:
                        code, j = POINT_POINT, S.line[l][where // 2]
    if ti.static(MESH in S.targets):
        if row[KIND] == MESH:
            j, code = row[LATTICE], POINT_GRID
            phi, _g, _n, _bend, _R, _w, scale = on_lattice(
                S, e, j, row[BODY], x - place(S.dim, S.position, k, e, row[BODY], S.extent[0]))
            gap = scale * phi
    if gap - r <= reach:
        emit(S, T, e, k, code, i, j, surface)


@ti.func
def axis_of(S: ti.template(), e, l):
    """Unit vector along a line, and its length."""
    along = S.arm[e * S.extent[1] + S.line[l][1]] - S.arm[e * S.extent[1] + S.line[l][0]]
    length = ti.sqrt(along.norm_sqr())
    return along / length, length
