"""Kernels that light what is seen: ambient occlusion, soft shadows, floor, background (conventions: raster.py)."""

# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false, reportArgumentType=false

from taichi_sim.runtime import ti
from taichi_sim.viz.raster import F1, F2, F3, FLOOR, I2, SKY, V3, f, in_sun, in_world, ray, row3, triple, unit

U3 = ti.types.ndarray(dtype=ti.u8, ndim=3)


@ti.kernel
def occlusion(where: F2, ids: I2, normal: F3, cam: F1, reach: ti.f32, spiral: F3, out: F2):
    """Share of the sky seen past what is within ``reach`` m, from depth alone; one value per picture pixel.

    ``where`` (H, W): depth of each pixel's first sample; ``cam`` is that of whole pixels. ``spiral`` (16, taps, 2):
    unit directions times a growing distance 0..1, one turn of them per pixel of a 4 × 4 tile.
    """
    rows, cols = where.shape[0], where.shape[1]
    scale = ids.shape[0] // rows
    taps = spiral.shape[1]
    for y, x in out:
        t = where[y, x]
        hidden = f(0.0)
        span = ti.min(cam[12] * reach / t, f(0.25) * ti.cast(rows, ti.f32)) + f(1.0)
        if ids[y * scale, x * scale] != SKY and span > f(2.5):
            small, middle, centre = f(1.0) / cam[12], cam[13] - f(0.5), cam[14] - f(0.5)
            p = V3((ti.cast(x, ti.f32) - middle) * small, (centre - ti.cast(y, ti.f32)) * small, f(1.0)) * t
            w = V3(normal[y * scale, x * scale, 0], normal[y * scale, x * scale, 1], normal[y * scale, x * scale, 2])
            n = V3(w.dot(triple(cam, 3)), w.dot(triple(cam, 6)), w.dot(triple(cam, 9)))
            turn = (x & 3) * 4 + (y & 3)
            inverse = f(1.0) / (reach * reach)
            for s in range(taps):
                yy = y + ti.cast(span * spiral[turn, s, 1], ti.i32)
                xx = x + ti.cast(span * spiral[turn, s, 0], ti.i32)
                if yy >= 0 and yy < rows and xx >= 0 and xx < cols:
                    q = V3((ti.cast(xx, ti.f32) - middle) * small, (centre - ti.cast(yy, ti.f32)) * small, f(1.0))
                    v = q * where[yy, xx] - p
                    vv = v.dot(v)
                    fade = f(1.0) - vv * inverse
                    if fade > f(0.0):
                        hidden += fade * ti.max(v.dot(n) / ti.sqrt(vv + f(1e-20)) - f(0.12), f(0.0))
            hidden = hidden / ti.cast(taps, ti.f32)
        out[y, x] = ti.max(f(1.0) - f(2.3) * hidden, f(0.12))


@ti.kernel
def blend_occlusion(open_: F2, where: F2, along: ti.i32, out: F2):
    """One of two passes of a mean over four pixels (the period of the sampling pattern) on the same surface."""
    rows, cols = out.shape[0], out.shape[1]
    for y, x in out:
        t = where[y, x]
        total = f(0.0)
        weight = f(0.0)
        for s in range(-2, 2):
            yy = ti.min(ti.max(y + (s if along == 1 else 0), 0), rows - 1)
            xx = ti.min(ti.max(x + (0 if along == 1 else s), 0), cols - 1)
            if ti.abs(where[yy, xx] - t) < f(0.04) * t:
                total += open_[yy, xx]
                weight += f(1.0)
        out[y, x] = total / weight if weight > f(0.0) else open_[y, x]


@ti.func
def sunlit(p, n, sun: ti.template(), shadow: ti.template(), taps: ti.template()):
    """Share of the sun seen from ``p``, 0..1; edges grow softer with the distance of what casts the shadow."""
    size = shadow.shape[0]
    count = taps.shape[0]
    q = in_sun(sun, p + n * sun[13])
    light = f(1.0)
    reach = f(14.0)
    top = ti.cast(size, ti.f32)
    if q[0] > -reach and q[0] < top + reach and q[1] > -reach and q[1] < top + reach:
        found = f(0.0)
        above = f(0.0)
        for k in range(8):
            i = ti.cast(ti.floor(q[0] + taps[k * count // 8, 0] * f(10.0)), ti.i32)
            j = ti.cast(ti.floor(q[1] + taps[k * count // 8, 1] * f(10.0)), ti.i32)
            if i >= 0 and i < size and j >= 0 and j < size:
                d = ti.bit_cast(shadow[j, i], ti.f32)
                if d < q[2]:
                    found += f(1.0)
                    above += q[2] - d
        if found > f(0.0):
            wide = ti.min(ti.max(above / found * sun[12] * f(0.09), f(1.6)), reach)
            blocked = 0
            for k in range(count):
                i = ti.cast(ti.floor(q[0] + taps[k, 0] * wide), ti.i32)
                j = ti.cast(ti.floor(q[1] + taps[k, 1] * wide), ti.i32)
                if i >= 0 and i < size and j >= 0 and j < size:
                    if ti.bit_cast(shadow[j, i], ti.f32) < q[2]:
                        blocked += 1
            light = f(1.0) - ti.cast(blocked, ti.f32) / ti.cast(count, ti.f32)
    return light


@ti.func
def stripe(x, cell, half):
    """1 on lines ``half`` wide to either side of every multiple of ``cell``, else 0, smooth over the line's width."""
    d = ti.abs(x / cell - ti.floor(x / cell + f(0.5))) * cell
    return ti.max(f(0.0), f(1.0) - d / half)


@ti.func
def floor_color(p, floor: ti.template(), footprint):
    """``floor`` (8,): cell m, lower x y, upper x y of the domain m, line width m, outline 0|1, -."""
    cell = floor[0]
    even = (ti.cast(ti.floor(p[0] / cell), ti.i32) + ti.cast(ti.floor(p[1] / cell), ti.i32)) & 1
    fine = ti.min(ti.max(f(1.6) - footprint / cell * f(4.0), f(0.0)), f(1.0))  # far cells melt into their mean
    color = V3(f(0.500), f(0.518), f(0.545)) * (f(1.0) + fine * (f(0.035) if even == 0 else f(-0.035)))
    half = ti.max(floor[5], footprint * f(0.8))
    line = ti.max(stripe(p[0], cell, half), stripe(p[1], cell, half)) * ti.min(floor[5] / half * f(1.2), f(1.0))
    color = color * (f(1.0) - f(0.16) * line * fine)
    if floor[6] > f(0.0):  # outline of the domain
        edge = ti.max(
            ti.max(floor[1] - p[0], p[0] - floor[3]),
            ti.max(floor[2] - p[1], p[1] - floor[4]),
        )
        wide = ti.max(floor[5] * f(1.6), footprint)
        color = color * (f(1.0) - f(0.42) * ti.max(f(0.0), f(1.0) - ti.abs(edge) / wide))
    return color


@ti.func
def background(rise):
    """Colour (linear) of the empty room for the ray's slope ``rise`` (sine of its elevation)."""
    a = ti.min(ti.max(rise * f(1.6) + f(0.06), f(0.0)), f(1.0))
    low = V3(f(0.740), f(0.765), f(0.800))
    high = V3(f(0.360), f(0.450), f(0.590))
    return low + (high - low) * a


@ti.func
def encoded(x):
    """Linear light -> sRGB value 0..255 with a soft shoulder."""
    y = ti.max(x, f(0.0))
    if y > f(0.7):
        y = f(0.7) + f(0.3) * (f(1.0) - ti.exp((f(0.7) - y) / f(0.3)))
    return ti.cast(ti.min(ti.pow(y, f(0.45454545)) * f(255.0) + f(0.5), f(255.0)), ti.u8)


@ti.kernel
def light_up(
    depth: F2, ids: I2, normal: F3, colors: F2, open_: F2, where: F2, shadow: I2, taps: F2, cam: F1, sun: F1, floor: F1,
    far: ti.f32, out: U3,
):  # fmt: skip
    """Colour of every picture pixel: the mean of its samples, each lit by sun, sky, bounce and a rim of light.

    A pixel of nothing but floor or sky takes one sample: there is nothing to smooth.
    """
    scale = depth.shape[0] // out.shape[0]
    rows, cols = out.shape[0], out.shape[1]
    down = triple(sun, 6)
    for y, x in ti.ndrange(out.shape[0], out.shape[1]):
        count = 1
        for sub in range(scale * scale):
            other = ids[y * scale + sub // scale, x * scale + sub % scale]
            if other >= 0 or other != ids[y * scale, x * scale]:
                count = scale * scale
        total = V3(f(0.0), f(0.0), f(0.0))
        sunned = f(1.0)  # light of the sun on the pixel's surface at depth `known`, shared by its samples
        known = f(-1.0)
        for sub in range(count):
            j, i = y * scale + sub // scale, x * scale + sub % scale
            t = depth[j, i]
            seen = ids[j, i]
            w = in_world(cam, ray(cam, j, i))
            away = ti.sqrt(w.dot(w))
            toward = -w / away
            empty = background(-toward[2])
            color = empty
            if seen != SKY:
                p = triple(cam, 0) + t * w
                n = V3(normal[j, i, 0], normal[j, i, 1], normal[j, i, 2])
                ao = open_[y, x]
                if ti.abs(where[y, x] - t) > f(0.03) * t:  # the pixel's own value belongs to another surface
                    best = ti.abs(where[y, x] - t)
                    for q in range(9):
                        yy = ti.min(ti.max(y + q // 3 - 1, 0), rows - 1)
                        xx = ti.min(ti.max(x + q % 3 - 1, 0), cols - 1)
                        if ti.abs(where[yy, xx] - t) < best:
                            best = ti.abs(where[yy, xx] - t)
                            ao = open_[yy, xx]
                facing = -n.dot(down)
                lit = f(0.0)
                if facing > f(-0.15):
                    if ti.abs(known - t) > f(0.3) * sun[13]:
                        sunned = sunlit(p, n, sun, shadow, taps)
                        known = t
                    lit = sunned
                up = n[2] * f(0.5) + f(0.5)
                sky = V3(f(0.50), f(0.55), f(0.63)) * up + V3(f(0.30), f(0.28), f(0.26)) * (f(1.0) - up)
                wrap = ti.max((facing + f(0.15)) / f(1.15), f(0.0)) * lit
                light = sky * ao + V3(f(0.98), f(0.93), f(0.86)) * (wrap * (f(0.55) + f(0.45) * ao))
                if seen == FLOOR:
                    footprint = t * away / (cam[12] * ti.max(toward[2], f(0.05)))  # m of floor under a sample
                    if count == 1:
                        footprint = footprint * ti.cast(scale, ti.f32)
                    color = floor_color(p, floor, footprint) * light
                    haze = ti.min(t / far, f(1.0))
                    haze = haze * haze * (f(3.0) - f(2.0) * haze)
                    color = color + (empty - color) * haze
                else:
                    gloss = ti.max(n.dot(unit(toward - down)), f(0.0))
                    gloss = gloss * gloss
                    gloss = gloss * gloss
                    gloss = gloss * gloss * gloss  # ^ 12
                    gloss = gloss * gloss * lit * f(0.20)  # ^ 24
                    rim = f(1.0) - ti.max(n.dot(toward), f(0.0))
                    rim = rim * rim * rim * f(0.12) * ao
                    fill = (
                        f(0.16) * ti.max(n.dot(toward), f(0.0)) * ao
                    )  # a weak lamp at the camera shapes the dark side
                    color = row3(colors, seen) * (light + V3(fill, fill, fill)) + V3(gloss, gloss, gloss) + empty * rim
            total = total + color
        total = total / ti.cast(count, ti.f32)
        out[y, x, 0] = encoded(total[0])
        out[y, x, 1] = encoded(total[1])
        out[y, x, 2] = encoded(total[2])
