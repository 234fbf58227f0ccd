"""Kernels that find what is seen: spheres and triangles into a z-buffer and a shadow map, then depth and normals.

Every number in these kernels is ``ti.f32`` whatever the runtime's default is (``f`` casts literals), and every array
is a NumPy array handed over at the launch: pictures are the same bits in f32 and f64 programs, and the renderer owns
no memory of the runtime. A z-buffer entry packs ``depth bits << 32 | id``; the smallest wins by ``atomic_min``, so the
order of the threads does not matter.

``cam`` (16,): position, right, up, forward (3 each), focal length px, centre column px, centre row px, nearest depth m.
``sun`` (16,): right, up, direction of travel (3 each), origin in those axes (3), texels per metre, bias m.
"""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false

import numpy as np

from taichi_sim.runtime import ti

f = ti.f32
V2 = ti.types.vector(2, ti.f32)
V3 = ti.types.vector(3, ti.f32)
F1 = ti.types.ndarray(dtype=ti.f32, ndim=1)
F2 = ti.types.ndarray(dtype=ti.f32, ndim=2)
F3 = ti.types.ndarray(dtype=ti.f32, ndim=3)
I2 = ti.types.ndarray(dtype=ti.i32, ndim=2)
L2 = ti.types.ndarray(dtype=ti.i64, ndim=2)

EMPTY = np.int64(0x7F7FFFFF) << np.int64(32)  # nothing seen: the largest finite depth
DARK = 0x7F7FFFFF
SKY, FLOOR = -1, -2  # ids of pixels that show no particle and no triangle


@ti.func
def row3(a: ti.template(), i: ti.i32):
    return V3(a[i, 0], a[i, 1], a[i, 2])


@ti.func
def triple(a: ti.template(), i: ti.i32):
    return V3(a[i], a[i + 1], a[i + 2])


@ti.func
def unit(v):
    return v / ti.sqrt(v.dot(v) + f(1e-30))


@ti.func
def in_view(cam: ti.template(), p):
    """World point -> (right, up, depth) seen from the camera."""
    q = p - triple(cam, 0)
    return V3(q.dot(triple(cam, 3)), q.dot(triple(cam, 6)), q.dot(triple(cam, 9)))


@ti.func
def ray(cam: ti.template(), row, col):
    """Direction through a pixel's centre in view axes, depth 1."""
    x = (ti.cast(col, ti.f32) + f(0.5) - cam[13]) / cam[12]
    y = (cam[14] - ti.cast(row, ti.f32) - f(0.5)) / cam[12]
    return V3(x, y, f(1.0))


@ti.func
def in_world(cam: ti.template(), v):
    """Direction in view axes -> world."""
    return v[0] * triple(cam, 3) + v[1] * triple(cam, 6) + v[2] * triple(cam, 9)


@ti.func
def key_of(depth, number):
    return (ti.cast(ti.bit_cast(depth, ti.i32), ti.i64) << ti.cast(32, ti.i64)) | ti.cast(number, ti.i64)


@ti.func
def id_of(key):
    return ti.cast(key & ti.cast(0x7FFFFFFF, ti.i64), ti.i32)


@ti.func
def depth_of(key):
    return ti.bit_cast(ti.cast(key >> ti.cast(32, ti.i64), ti.i32), ti.f32)


@ti.kernel
def draw_spheres(points: F2, radius: F1, cam: F1, zbuf: L2):
    rows, cols = zbuf.shape[0], zbuf.shape[1]
    for k in range(points.shape[0]):
        c = in_view(cam, row3(points, k))
        r = radius[k]
        if c[2] > cam[15] + r:
            # exact outline of a sphere in perspective
            zz = c[2] * c[2] - r * r
            wide = r * ti.sqrt(c[0] * c[0] + zz)
            high = r * ti.sqrt(c[1] * c[1] + zz)
            i0 = ti.max(f(0.0), ti.min(cam[13] + cam[12] * (c[0] * c[2] - wide) / zz, ti.cast(cols, ti.f32)))
            i1 = ti.max(f(0.0), ti.min(cam[13] + cam[12] * (c[0] * c[2] + wide) / zz, ti.cast(cols, ti.f32)))
            j0 = ti.max(f(0.0), ti.min(cam[14] - cam[12] * (c[1] * c[2] + high) / zz, ti.cast(rows, ti.f32)))
            j1 = ti.max(f(0.0), ti.min(cam[14] - cam[12] * (c[1] * c[2] - high) / zz, ti.cast(rows, ti.f32)))
            least = key_of(c[2] - r, 0)  # nothing of this sphere is nearer
            scale, middle, centre = f(1.0) / cam[12], cam[13] - f(0.5), cam[14] - f(0.5)
            for j in range(ti.cast(j0, ti.i32), ti.min(ti.cast(j1, ti.i32) + 1, rows)):
                y = (centre - ti.cast(j, ti.f32)) * scale
                for i in range(ti.cast(i0, ti.i32), ti.min(ti.cast(i1, ti.i32) + 1, cols)):
                    if zbuf[j, i] > least:
                        d = V3((ti.cast(i, ti.f32) - middle) * scale, y, f(1.0))
                        a = f(1.0) / d.dot(d)
                        b = d.dot(c) * a
                        off = c - b * d
                        left = r * r - off.dot(off)
                        if left > f(0.0):
                            key = key_of(b - ti.sqrt(left * a), k)
                            if key < zbuf[j, i]:
                                ti.atomic_min(zbuf[j, i], key)


@ti.kernel
def draw_triangles(corners: F3, first: ti.i32, cam: F1, zbuf: L2):
    """``corners`` (triangles, 3, 3) m; ids start at ``first``. Rays meet triangles, so none needs clipping."""
    rows, cols = zbuf.shape[0], zbuf.shape[1]
    for k in range(corners.shape[0]):
        p0 = in_view(cam, V3(corners[k, 0, 0], corners[k, 0, 1], corners[k, 0, 2]))
        p1 = in_view(cam, V3(corners[k, 1, 0], corners[k, 1, 1], corners[k, 1, 2]))
        p2 = in_view(cam, V3(corners[k, 2, 0], corners[k, 2, 1], corners[k, 2, 2]))
        near = cam[15]
        i0, i1, j0, j1 = 0, cols - 1, 0, rows - 1
        if ti.min(p0[2], p1[2], p2[2]) > near:
            w, h = ti.cast(cols, ti.f32), ti.cast(rows, ti.f32)
            x0, x1, x2 = p0[0] / p0[2], p1[0] / p1[2], p2[0] / p2[2]
            y0, y1, y2 = p0[1] / p0[2], p1[1] / p1[2], p2[1] / p2[2]
            i0 = ti.cast(ti.max(f(0.0), ti.min(cam[13] + cam[12] * ti.min(x0, x1, x2), w)), ti.i32)
            i1 = ti.cast(ti.max(f(-1.0), ti.min(cam[13] + cam[12] * ti.max(x0, x1, x2), w - f(1.0))), ti.i32)
            j0 = ti.cast(ti.max(f(0.0), ti.min(cam[14] - cam[12] * ti.max(y0, y1, y2), h)), ti.i32)
            j1 = ti.cast(ti.max(f(-1.0), ti.min(cam[14] - cam[12] * ti.min(y0, y1, y2), h - f(1.0))), ti.i32)
        if ti.max(p0[2], p1[2], p2[2]) > near:
            e1, e2 = p1 - p0, p2 - p0
            n = e1.cross(e2)
            d0, d1, d2 = p1.cross(p2), p2.cross(p0), p0.cross(p1)  # signed volumes of ray and edge
            for j in range(j0, j1 + 1):
                for i in range(i0, i1 + 1):
                    d = ray(cam, j, i)
                    w0, w1, w2 = d.dot(d0), d.dot(d1), d.dot(d2)
                    inside = (w0 >= f(0.0) and w1 >= f(0.0) and w2 >= f(0.0)) or (
                        w0 <= f(0.0) and w1 <= f(0.0) and w2 <= f(0.0)
                    )
                    below = n.dot(d)
                    if inside and below != f(0.0):
                        t = n.dot(p0) / below
                        if t > near:
                            key = key_of(t, first + k)
                            if key < zbuf[j, i]:
                                ti.atomic_min(zbuf[j, i], key)


@ti.func
def in_sun(sun: ti.template(), p):
    """World point -> texel column, texel row, depth m along the light."""
    x = (p.dot(triple(sun, 0)) - sun[9]) * sun[12]
    y = (p.dot(triple(sun, 3)) - sun[10]) * sun[12]
    return V3(x, y, p.dot(triple(sun, 6)) - sun[11])


@ti.kernel
def shade_spheres(points: F2, radius: F1, sun: F1, shadow: I2):
    size = shadow.shape[0]
    top = ti.cast(size, ti.f32)
    for k in range(points.shape[0]):
        c = in_sun(sun, row3(points, k))
        r = ti.max(radius[k] * sun[12], f(0.75))  # texels; at least a texel, or small particles cast no shadow
        i0 = ti.cast(ti.max(f(0.0), ti.min(c[0] - r, top)), ti.i32)
        i1 = ti.cast(ti.max(f(-1.0), ti.min(c[0] + r, top - f(1.0))), ti.i32)
        j0 = ti.cast(ti.max(f(0.0), ti.min(c[1] - r, top)), ti.i32)
        j1 = ti.cast(ti.max(f(-1.0), ti.min(c[1] + r, top - f(1.0))), ti.i32)
        metres = f(1.0) / sun[12]
        least = ti.bit_cast(ti.max(c[2] - r * metres, f(0.0)), ti.i32)
        for j in range(j0, j1 + 1):
            y = ti.cast(j, ti.f32) + f(0.5) - c[1]
            for i in range(i0, i1 + 1):
                if shadow[j, i] > least:
                    x = ti.cast(i, ti.f32) + f(0.5) - c[0]
                    left = r * r - x * x - y * y
                    if left > f(0.0):
                        bits = ti.bit_cast(ti.max(c[2] - ti.sqrt(left) * metres, f(0.0)), ti.i32)
                        if bits < shadow[j, i]:
                            ti.atomic_min(shadow[j, i], bits)


@ti.kernel
def shade_triangles(corners: F3, sun: F1, shadow: I2):
    size = shadow.shape[0]
    top = ti.cast(size, ti.f32)
    for k in range(corners.shape[0]):
        a = in_sun(sun, V3(corners[k, 0, 0], corners[k, 0, 1], corners[k, 0, 2]))
        b = in_sun(sun, V3(corners[k, 1, 0], corners[k, 1, 1], corners[k, 1, 2]))
        c = in_sun(sun, V3(corners[k, 2, 0], corners[k, 2, 1], corners[k, 2, 2]))
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if ti.abs(area) > f(1e-6):
            i0 = ti.cast(ti.max(f(0.0), ti.min(ti.min(a[0], b[0], c[0]), top)), ti.i32)
            i1 = ti.cast(ti.max(f(-1.0), ti.min(ti.max(a[0], b[0], c[0]), top - f(1.0))), ti.i32)
            j0 = ti.cast(ti.max(f(0.0), ti.min(ti.min(a[1], b[1], c[1]), top)), ti.i32)
            j1 = ti.cast(ti.max(f(-1.0), ti.min(ti.max(a[1], b[1], c[1]), top - f(1.0))), ti.i32)
            for j in range(j0, j1 + 1):
                for i in range(i0, i1 + 1):
                    x, y = ti.cast(i, ti.f32) + f(0.5), ti.cast(j, ti.f32) + f(0.5)
                    w1 = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / area
                    w2 = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / area
                    if w1 >= f(0.0) and w2 >= f(0.0) and w1 + w2 <= f(1.0):
                        depth = ti.max(a[2] + w1 * (b[2] - a[2]) + w2 * (c[2] - a[2]), f(0.0))
                        bits = ti.bit_cast(depth, ti.i32)
                        if bits < shadow[j, i]:
                            ti.atomic_min(shadow[j, i], bits)


@ti.kernel
def resolve(
    zbuf: L2, points: F2, radius: F1, corners: F3, normals: F3, cam: F1, floor: ti.f32, far: ti.f32,
    depth: F2, normal: F3, ids: I2,
):  # fmt: skip
    """Depth (m along the view), world normal and id of every sample; the floor plane z = ``floor`` ends at ``far``."""
    n = points.shape[0]
    for j, i in zbuf:
        key = zbuf[j, i]
        d = ray(cam, j, i)
        w = in_world(cam, d)
        t = depth_of(key)
        seen = SKY
        facing = V3(f(0.0), f(0.0), f(1.0))
        if t < f(1e30):
            seen = id_of(key)
            p = triple(cam, 0) + t * w
            if seen < n:
                facing = (p - row3(points, seen)) / radius[seen]
            else:
                k = seen - n
                a = V3(corners[k, 0, 0], corners[k, 0, 1], corners[k, 0, 2])
                b = V3(corners[k, 1, 0], corners[k, 1, 1], corners[k, 1, 2])
                c = V3(corners[k, 2, 0], corners[k, 2, 1], corners[k, 2, 2])
                face = (b - a).cross(c - a)
                area = face.dot(face) + f(1e-30)
                w1 = (p - a).cross(c - a).dot(face) / area
                w2 = (b - a).cross(p - a).dot(face) / area
                w0 = f(1.0) - w1 - w2
                n0 = V3(normals[k, 0, 0], normals[k, 0, 1], normals[k, 0, 2])
                n1 = V3(normals[k, 1, 0], normals[k, 1, 1], normals[k, 1, 2])
                n2 = V3(normals[k, 2, 0], normals[k, 2, 1], normals[k, 2, 2])
                facing = unit(w0 * n0 + w1 * n1 + w2 * n2)
                if facing.dot(w) > f(0.0):  # seen from behind, or an open surface
                    facing = -facing
        if w[2] < f(-1e-4):
            tf = (floor - cam[2]) / w[2]
            if tf > cam[15] and tf < far and tf < t:
                t = tf
                seen = FLOOR
                facing = V3(f(0.0), f(0.0), f(1.0))
        depth[j, i] = t
        ids[j, i] = seen
        normal[j, i, 0] = facing[0]
        normal[j, i, 1] = facing[1]
        normal[j, i, 2] = facing[2]


@ti.kernel
def blend_normals(depth: F2, ids: I2, normal: F3, radius: F1, cam: F1, along: ti.i32, amount: ti.f32, out: F3):
    """One of two passes (``along`` 0: columns, 1: rows) that lets neighbouring particles share their normals;
    other pixels are neither read nor written."""
    rows, cols = depth.shape[0], depth.shape[1]
    n = radius.shape[0]
    for j, i in depth:
        k = ids[j, i]
        if 0 <= k and k < n:
            own = V3(normal[j, i, 0], normal[j, i, 1], normal[j, i, 2])
            t = depth[j, i]
            reach = ti.min(ti.cast(cam[12] * radius[k] * f(2.2) / t + f(0.5), ti.i32), 24)
            step = reach // 6 + 1
            total = own
            taps = reach // step
            for s in range(-taps, taps + 1):
                jj = ti.min(ti.max(j + (s * step if along == 1 else 0), 0), rows - 1)
                ii = ti.min(ti.max(i + (0 if along == 1 else s * step), 0), cols - 1)
                m = ids[jj, ii]
                if 0 <= m and m < n and ti.abs(depth[jj, ii] - t) < f(3.0) * radius[k]:
                    x = ti.cast(s * step, ti.f32) / (ti.cast(reach, ti.f32) + f(1.0))
                    total = total + (f(1.0) - x * x) * V3(normal[jj, ii, 0], normal[jj, ii, 1], normal[jj, ii, 2])
            own = unit(own * (f(1.0) - amount) + unit(total) * amount)
            out[j, i, 0] = own[0]
            out[j, i, 1] = own[1]
            out[j, i, 2] = own[2]
