"""Kernels of flat (2-D) pictures: the nearest particle of every sample, polygons by signed distance, soft shading.

Same conventions as raster.py: explicit ``ti.f32``, NumPy arrays, z-buffer keys ``distance bits << 32 | id``.
``view`` (8,): centre x y m, samples per metre, centre column, centre row, domain lower x y ... see :func:`paint_room`.
Colours are mixed as sRGB values, as a drawing programme does.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false

from taichi_sim.runtime import ti
from taichi_sim.viz.raster import F1, F2, F3, L2, V2, V3, depth_of, f, id_of, key_of, row3
from taichi_sim.viz.shade import U3, stripe

I1 = ti.types.ndarray(dtype=ti.i32, ndim=1)


@ti.func
def to_world(view: ti.template(), row, col):
    """World position (m) of a sample's centre."""
    x = view[0] + (ti.cast(col, ti.f32) + f(0.5) - view[3]) / view[2]
    y = view[1] - (ti.cast(row, ti.f32) + f(0.5) - view[4]) / view[2]
    return V2(x, y)


@ti.kernel
def draw_discs(points: F2, reach: F1, view: F1, zbuf: L2):
    """Every sample within ``reach`` (n,) m of a particle learns the nearest one, at distance² / reach²."""
    rows, cols = zbuf.shape[0], zbuf.shape[1]
    for k in range(points.shape[0]):
        x = view[3] + (points[k, 0] - view[0]) * view[2]
        y = view[4] - (points[k, 1] - view[1]) * view[2]
        r = ti.max(reach[k] * view[2], f(0.8))
        i0 = ti.cast(ti.max(f(0.0), ti.min(x - r, ti.cast(cols, ti.f32))), ti.i32)
        i1 = ti.cast(ti.max(f(-1.0), ti.min(x + r, ti.cast(cols - 1, ti.f32))), ti.i32)
        j0 = ti.cast(ti.max(f(0.0), ti.min(y - r, ti.cast(rows, ti.f32))), ti.i32)
        j1 = ti.cast(ti.max(f(-1.0), ti.min(y + r, ti.cast(rows - 1, ti.f32))), ti.i32)
        for j in range(j0, j1 + 1):
            for i in range(i0, i1 + 1):
                dx, dy = ti.cast(i, ti.f32) + f(0.5) - x, ti.cast(j, ti.f32) + f(0.5) - y
                d = (dx * dx + dy * dy) / (r * r)
                if d < f(1.0):
                    key = key_of(d, k)
                    if key < zbuf[j, i]:
                        ti.atomic_min(zbuf[j, i], key)


@ti.func
def segment_distance(p, a, b):
    ab = b - a
    t = ti.min(ti.max((p - a).dot(ab) / (ab.dot(ab) + f(1e-30)), f(0.0)), f(1.0))
    q = p - a - t * ab
    return ti.sqrt(q.dot(q))


@ti.kernel
def draw_segments(ends: F2, width: F1, ring: F1, view: F1, zbuf: L2):
    """Lines ``ends`` (n, 4) m of ``width`` (n,) m; with ``ring`` > 0 a circle of that radius around the first end."""
    rows, cols = zbuf.shape[0], zbuf.shape[1]
    for k in range(ends.shape[0]):
        a, b = V2(ends[k, 0], ends[k, 1]), V2(ends[k, 2], ends[k, 3])
        half = ti.max(f(0.5) * width[k], f(1.2) / view[2])
        out = half + ring[k] + f(2.0) / view[2]
        x0 = view[3] + (ti.min(a[0], b[0]) - out - view[0]) * view[2]
        x1 = view[3] + (ti.max(a[0], b[0]) + out - view[0]) * view[2]
        y0 = view[4] - (ti.max(a[1], b[1]) + out - view[1]) * view[2]
        y1 = view[4] - (ti.min(a[1], b[1]) - out - view[1]) * view[2]
        i0 = ti.cast(ti.max(f(0.0), ti.min(x0, ti.cast(cols, ti.f32))), ti.i32)
        i1 = ti.cast(ti.max(f(-1.0), ti.min(x1, ti.cast(cols - 1, ti.f32))), ti.i32)
        j0 = ti.cast(ti.max(f(0.0), ti.min(y0, ti.cast(rows, ti.f32))), ti.i32)
        j1 = ti.cast(ti.max(f(-1.0), ti.min(y1, ti.cast(rows - 1, ti.f32))), ti.i32)
        for j in range(j0, j1 + 1):
            for i in range(i0, i1 + 1):
                d = segment_distance(to_world(view, j, i), a, b)
                if ring[k] > f(0.0):
                    d = ti.min(ti.abs(d - ring[k]), ti.max(d - ring[k] * f(0.22), f(0.0)))
                if d < half:
                    key = key_of(d / half, k)
                    if key < zbuf[j, i]:
                        ti.atomic_min(zbuf[j, i], key)


@ti.func
def polygon_distance(p, corners: ti.template(), first, last):
    """Signed distance (m) to a closed polygon, negative inside; inside is decided by crossings of a ray."""
    best = f(1e30)
    inside = 0
    for k in range(first, last):
        m = k + 1 if k + 1 < last else first
        a, b = V2(corners[k, 0], corners[k, 1]), V2(corners[m, 0], corners[m, 1])
        best = ti.min(best, segment_distance(p, a, b))
        if (a[1] > p[1]) != (b[1] > p[1]) and p[0] < (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]) + a[0]:
            inside = 1 - inside
    return -best if inside == 1 else best


@ti.func
def mix(a, b, t):
    return a + (b - a) * t


@ti.kernel
def paint_room(view: F1, room: F1, corners: F2, starts: I1, boxes: F2, colors: F2, out: F3):
    """Everything that stands still: paper, grid, walls of the domain, obstacles with their shadows.

    ``room`` (8,): lower x y, upper x y of the domain m, grid cell m, 1 if there are walls, shadow offset m, -.
    ``corners`` of all polygons; polygon k is ``starts[k]:starts[k + 1]`` with bounds ``boxes`` (k, 4) m.
    """
    px = f(1.0) / view[2]  # a sample, m
    for j, i in ti.ndrange(out.shape[0], out.shape[1]):
        p = to_world(view, j, i)
        tall = ti.max(room[3] - room[1], px)
        rise = ti.min(ti.max((p[1] - room[1]) / tall, f(0.0)), f(1.0))
        color = mix(V3(f(0.918), f(0.928), f(0.942)), V3(f(0.975), f(0.980), f(0.988)), rise)
        half = f(1.3) * px
        line = ti.max(stripe(p[0] - room[0], room[4], half), stripe(p[1] - room[1], room[4], half))
        bold = ti.max(stripe(p[0] - room[0], room[4] * f(5.0), half), stripe(p[1] - room[1], room[4] * f(5.0), half))
        color = mix(color, V3(f(0.70), f(0.74), f(0.80)), ti.max(line * f(0.30), bold * f(0.62)))
        edge = ti.max(
            ti.max(room[0] - p[0], p[0] - room[2]),
            ti.max(room[1] - p[1], p[1] - room[3]),
        )
        if room[5] > f(0.0):
            if edge > f(0.0):  # solid wall around the domain, darkest at its face
                soft = ti.min(edge / (f(16.0) * px), f(1.0))
                color = mix(V3(f(0.735), f(0.760), f(0.795)), V3(f(0.825), f(0.845), f(0.870)), soft)
            line = ti.max(f(0.0), f(1.0) - ti.abs(edge - f(1.0) * px) / (f(2.2) * px))
            color = mix(color, V3(f(0.36), f(0.40), f(0.46)), line)
        for k in range(boxes.shape[0]):
            near = ti.max(
                ti.max(boxes[k, 0] - p[0], p[0] - boxes[k, 2]),
                ti.max(boxes[k, 1] - p[1], p[1] - boxes[k, 3]),
            )
            if near < room[6] * f(4.0) and edge < f(2.0) * px:
                base = row3(colors, k)
                drop = V2(p[0] - room[6], p[1] + room[6] * f(1.2))
                away = polygon_distance(drop, corners, starts[k], starts[k + 1])
                d = polygon_distance(p, corners, starts[k], starts[k + 1])
                under = ti.min(ti.max(f(0.5) - away / (room[6] * f(2.4)), f(0.0)), f(1.0))
                color = mix(color, V3(f(0.25), f(0.28), f(0.34)), under * f(0.30))
                cover = ti.min(ti.max(f(0.5) - d / px, f(0.0)), f(1.0))
                slant = stripe(p[0] + p[1], room[4] * f(0.25), f(2.0) * px)
                fill = base * (f(1.0) - f(0.07) * slant)
                rim = ti.min(ti.max(f(1.0) - (-d - f(1.0) * px) / (f(2.0) * px), f(0.0)), f(1.0))
                color = mix(color, mix(fill, base * f(0.62), rim), cover)
        out[j, i, 0] = color[0]
        out[j, i, 1] = color[1]
        out[j, i, 2] = color[2]


@ti.kernel
def cover(zbuf: L2, out: F2):
    """Share of a picture pixel's samples that particles cover."""
    scale = zbuf.shape[0] // out.shape[0]
    for y, x in out:
        count = 0
        for s in range(scale * scale):
            if depth_of(zbuf[y * scale + s // scale, x * scale + s % scale]) < f(2.0):
                count += 1
        out[y, x] = ti.cast(count, ti.f32) / ti.cast(scale * scale, ti.f32)


@ti.kernel
def blur(image: F2, along: ti.i32, reach: ti.i32, out: F2):
    """One pass of a mean over ``2 reach + 1`` pixels along columns (0) or rows (1)."""
    rows, cols = out.shape[0], out.shape[1]
    for y, x in out:
        total = f(0.0)
        for s in range(-reach, reach + 1):
            yy = ti.min(ti.max(y + (s if along == 1 else 0), 0), rows - 1)
            xx = ti.min(ti.max(x + (0 if along == 1 else s), 0), cols - 1)
            total += image[yy, xx]
        out[y, x] = total / ti.cast(2 * reach + 1, ti.f32)


@ti.func
def at(image: ti.template(), y, x):
    yy = ti.min(ti.max(y, 0), image.shape[0] - 1)
    xx = ti.min(ti.max(x, 0), image.shape[1] - 1)
    return image[yy, xx]


@ti.kernel
def compose(
    room: F3, zbuf: L2, colors: F2, reach: F1, tight: F2, wide: F2, drop: ti.i32, over: L2, over_colors: F2,
    view: F1, out: U3,
):  # fmt: skip
    """Room, shadow of the bodies, bodies with a soft bevel and an outline, then lines and markers over them."""
    scale = zbuf.shape[0] // out.shape[0]
    ink = V3(f(0.16), f(0.19), f(0.25))
    for y, x in ti.ndrange(out.shape[0], out.shape[1]):
        total = V3(f(0.0), f(0.0), f(0.0))
        shadow = at(wide, y - drop - drop // 4, x - drop)
        slope = (at(wide, y - 2, x) - at(wide, y + 2, x)) * f(-0.8) + (at(wide, y, x - 2) - at(wide, y, x + 2)) * f(
            -0.45
        )
        border = ti.min(ti.max((f(0.86) - tight[y, x]) / f(0.36), f(0.0)), f(1.0))
        for s in range(scale * scale):
            j, i = y * scale + s // scale, x * scale + s % scale
            color = V3(room[j, i, 0], room[j, i, 1], room[j, i, 2])
            key = zbuf[j, i]
            d = depth_of(key)
            if d < f(2.0):
                k = id_of(key)
                base = row3(colors, k)
                size = reach[k] * view[2] / ti.cast(scale, ti.f32)  # pixels; grains show when there is room for them
                grain = f(0.13) * ti.min(ti.max((size - f(1.2)) / f(3.0), f(0.0)), f(1.0))
                light = f(1.0) + grain * (f(0.28) - d) + ti.min(ti.max(slope * f(1.1), f(-0.16)), f(0.16))
                color = base * light
                color = mix(color, base * f(0.52), border * f(0.52))
            else:
                color = mix(color, ink, shadow * f(0.26))
            top = over[j, i]
            if depth_of(top) < f(2.0):
                color = mix(color, row3(over_colors, id_of(top)), f(0.9))
            total = total + color
        total = total / ti.cast(scale * scale, ti.f32)
        for c in ti.static(range(3)):
            value = ti.min(ti.max(total[c], f(0.0)), f(1.0))
            out[y, x, c] = ti.cast(value * f(255.0) + f(0.5), ti.u8)
