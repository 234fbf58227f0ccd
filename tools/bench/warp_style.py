"""The same step in Warp on the CPU, differentiated by ``wp.Tape``.

The tape needs every intermediate alive, so particles and grid are stored for every step. Neo-Hookean, Kirchhoff stress
mu (F F^T - I) + lambda ln J I. The stencil's loops have constant bounds and are unrolled by Warp: accumulating in a
dynamic loop would give a wrong gradient.
"""

import os
from typing import Any

import numpy as np

from bench.scenes import LAMBDA, MU, PAD, BenchScene
from bench.variant import Result, Unavailable, Variant, gradient_result

try:
    import warp as wp
except ImportError:  # optional: load() says so
    wp = None

FAR = 1e30


def _kernels(scene: BenchScene) -> dict[str, Any]:
    """The kernels of one scene; its numbers are compile-time constants, as in Warp's own examples."""
    dim, depth, nodes = scene.dim, 3 if scene.dim == 3 else 1, scene.nodes
    up, inner, outer = dim - 1, PAD, nodes - PAD
    dt, dx, inv_dx = scene.dt, scene.dx, float(nodes)
    mass = scene.particle_mass
    stress_scale = scene.particle_volume * 4.0 * inv_dx * inv_dx * dt
    mu, lam, kick, share = MU, LAMBDA, scene.gravity * dt, 1.0 / scene.n
    vec = wp.types.vector(length=dim, dtype=wp.float32)
    mat = wp.types.matrix(shape=(dim, dim), dtype=wp.float32)

    if dim == 3:

        @wp.func
        def offset(i: int, j: int, k: int) -> vec:
            return vec(float(i), float(j), float(k))

        @wp.func
        def row(base: wp.vec3i) -> int:
            return (base[0] * nodes + base[1]) * nodes + base[2]

        @wp.func
        def node(c: int) -> wp.vec3i:
            return wp.vec3i(c // (nodes * nodes), (c // nodes) % nodes, c % nodes)

        @wp.func
        def base_node(x: vec) -> wp.vec3i:
            return wp.vec3i(int(x[0] - 0.5), int(x[1] - 0.5), int(x[2] - 0.5))

        @wp.func
        def to_vec(i: wp.vec3i) -> vec:
            return vec(float(i[0]), float(i[1]), float(i[2]))

        @wp.func
        def weight(d: vec) -> float:
            return spline(d[0]) * spline(d[1]) * spline(d[2])

    else:

        @wp.func
        def offset(i: int, j: int, k: int) -> vec:
            return vec(float(i), float(j))

        @wp.func
        def row(base: wp.vec3i) -> int:
            return base[0] * nodes + base[1]

        @wp.func
        def node(c: int) -> wp.vec3i:
            return wp.vec3i(c // nodes, c % nodes, 0)

        @wp.func
        def base_node(x: vec) -> wp.vec3i:
            return wp.vec3i(int(x[0] - 0.5), int(x[1] - 0.5), 0)

        @wp.func
        def to_vec(i: wp.vec3i) -> vec:
            return vec(float(i[0]), float(i[1]))

        @wp.func
        def weight(d: vec) -> float:
            return spline(d[0]) * spline(d[1])

    stride_i, stride_j = (nodes * nodes, nodes) if dim == 3 else (nodes, 1)

    @wp.func
    def spline(d: float) -> float:
        a = wp.abs(d)
        value = 0.5 * (1.5 - a) * (1.5 - a)
        if a < 0.5:
            value = 0.75 - a * a
        return value

    @wp.kernel
    def scatter(
        x: wp.array(dtype=vec),
        v: wp.array(dtype=vec),
        C: wp.array(dtype=mat),
        F: wp.array(dtype=mat),
        F_next: wp.array(dtype=mat),
        grid_momentum: wp.array(dtype=vec),
        grid_mass: wp.array(dtype=float),
    ):
        p = wp.tid()
        xp = x[p] * inv_dx
        base = base_node(xp)
        fx = xp - to_vec(base)
        identity = wp.identity(n=dim, dtype=float)
        Fp = (identity + dt * C[p]) * F[p]
        F_next[p] = Fp
        stress = mu * (Fp * wp.transpose(Fp) - identity) + (lam * wp.log(wp.determinant(Fp))) * identity
        affine = mass * C[p] - stress_scale * stress
        start = row(base)
        for i in range(3):
            for j in range(3):
                for k in range(depth):
                    distance = offset(i, j, k) - fx
                    w = weight(distance)
                    c = start + i * stride_i + j * stride_j + k
                    wp.atomic_add(grid_momentum, c, w * (mass * v[p] + affine * (distance * dx)))
                    wp.atomic_add(grid_mass, c, w * mass)

    @wp.kernel
    def update_grid(
        grid_momentum: wp.array(dtype=vec), grid_mass: wp.array(dtype=float), grid_velocity: wp.array(dtype=vec)
    ):
        c = wp.tid()
        m = grid_mass[c]
        if m > 0.0:
            v = grid_momentum[c] / m
            index = node(c)
            lowest = vec(-FAR)
            highest = vec(FAR)
            for d in range(dim):
                if index[d] <= inner:
                    lowest[d] = 0.0
                if index[d] >= outer:
                    highest[d] = 0.0
            gravity = vec()
            gravity[up] = kick
            grid_velocity[c] = wp.min(wp.max(v + gravity, lowest), highest)

    @wp.kernel
    def gather(
        x: wp.array(dtype=vec),
        grid_velocity: wp.array(dtype=vec),
        x_next: wp.array(dtype=vec),
        v_next: wp.array(dtype=vec),
        C_next: wp.array(dtype=mat),
    ):
        p = wp.tid()
        xp = x[p] * inv_dx
        base = base_node(xp)
        fx = xp - to_vec(base)
        start = row(base)
        v = vec()
        C = mat()
        for i in range(3):
            for j in range(3):
                for k in range(depth):
                    distance = offset(i, j, k) - fx
                    weighted = weight(distance) * grid_velocity[start + i * stride_i + j * stride_j + k]
                    v = v + weighted
                    C = C + wp.outer(weighted, distance)
        v_next[p] = v
        C_next[p] = (4.0 * inv_dx) * C
        x_next[p] = x[p] + dt * v

    @wp.kernel
    def mean_height(x: wp.array(dtype=vec), height: wp.array(dtype=float)):
        wp.atomic_add(height, 0, x[wp.tid()][up] * share)

    return {
        "vec": vec,
        "mat": mat,
        "scatter": scatter,
        "update_grid": update_grid,
        "gather": gather,
        "mean_height": mean_height,
    }


class WarpStyle(Variant):
    def __init__(self, scene: BenchScene) -> None:
        self.scene = scene
        k = self.kernels = _kernels(scene)
        n, cells, steps = scene.n, scene.nodes**scene.dim, scene.steps

        def stored(count: int, size: int, dtype: Any) -> list[Any]:
            return [wp.zeros(size, dtype=dtype, device="cpu", requires_grad=True) for _ in range(count)]

        self.x, self.v = stored(steps + 1, n, k["vec"]), stored(steps + 1, n, k["vec"])
        self.C, self.F = stored(steps + 1, n, k["mat"]), stored(steps + 1, n, k["mat"])
        self.momentum, self.velocity = stored(steps, cells, k["vec"]), stored(steps, cells, k["vec"])
        self.mass = stored(steps, cells, wp.float32)
        self.height = wp.zeros(1, dtype=wp.float32, device="cpu", requires_grad=True)
        self.x[0].assign((scene.sorted_positions() + PAD * scene.dx).astype(np.float32))
        self.v[0].assign(np.tile(np.array(scene.velocity, np.float32), (n, 1)))
        self.F[0].assign(np.tile(np.eye(scene.dim, dtype=np.float32), (n, 1, 1)))
        self.gradient: np.ndarray | None = None

    def forward(self) -> None:
        k, n = self.kernels, self.scene.n
        for t in range(self.scene.steps):
            self.momentum[t].zero_()
            self.mass[t].zero_()
            particles = [self.x[t], self.v[t], self.C[t], self.F[t], self.F[t + 1]]
            wp.launch(k["scatter"], n, inputs=[*particles, self.momentum[t], self.mass[t]], device="cpu")
            grid = [self.momentum[t], self.mass[t], self.velocity[t]]
            wp.launch(k["update_grid"], len(self.mass[t]), inputs=grid, device="cpu")
            after = [self.x[t + 1], self.v[t + 1], self.C[t + 1]]
            wp.launch(k["gather"], n, inputs=[self.x[t], self.velocity[t], *after], device="cpu")
        self.height.zero_()
        wp.launch(k["mean_height"], n, inputs=[self.x[-1], self.height], device="cpu")

    def forward_backward(self) -> None:
        tape = wp.Tape()
        with tape:
            self.forward()
        tape.backward(self.height)
        self.gradient = self.v[0].grad.numpy().copy()
        tape.zero()

    def result(self) -> Result:
        mean_height = self.x[-1].numpy()[:, -1].mean(dtype=np.float64) - PAD * self.scene.dx
        return gradient_result(float(mean_height), self.gradient)


def load(scene: BenchScene, threads: int) -> WarpStyle:
    """Warp runs CPU kernels on one thread; ``threads`` cannot change that."""
    if wp is None:
        raise Unavailable("warp-lang is not installed (pip install 'taichi-sim[bench]')")
    if scene.friction or scene.muscle or scene.environments > 1:
        raise Unavailable("written for the bare box alone")
    wp.config.quiet = True
    if "BENCH_WARP_CACHE" in os.environ:
        wp.config.kernel_cache_dir = os.environ["BENCH_WARP_CACHE"]
    wp.init()
    return WarpStyle(scene)
