"""The same 2-D step with hand-written adjoints, every kernel an ordinary Taichi call on ndarrays.

What small scenes cost when each step pays for its launches: three going forward, three coming back. The grid of every
step is stored, so that nothing is computed twice; the scatter of so few particles is serial and needs no atomics.
Neo-Hookean, Kirchhoff stress mu (F F^T - I) + lambda ln J I.
"""

import os

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")

import numpy as np
import taichi as ti

from bench.scenes import LAMBDA, MU, PAD, BenchScene
from bench.variant import Result, Unavailable, Variant, gradient_result

vec2 = ti.types.vector(2, ti.f32)
vec3 = ti.types.vector(3, ti.f32)
mat2 = ti.types.matrix(2, 2, ti.f32)
Vectors = ti.types.ndarray(dtype=vec2, ndim=2)
Matrices = ti.types.ndarray(dtype=mat2, ndim=2)
Grid = ti.types.ndarray(dtype=vec3, ndim=2)
Grids = ti.types.ndarray(dtype=vec3, ndim=3)


@ti.func
def weights(fx):
    """Quadratic B-spline weights, one row per node, one column per axis."""
    a, b, c = 0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2
    return ti.Matrix([[a[0], a[1]], [b[0], b[1]], [c[0], c[1]]])


@ti.func
def slopes(fx, inv_dx):
    """Derivatives of the weights by the particle's position, 1/m."""
    a, b, c = inv_dx * (fx - 1.5), -2.0 * inv_dx * (fx - 1.0), inv_dx * (fx - 0.5)
    return ti.Matrix([[a[0], a[1]], [b[0], b[1]], [c[0], c[1]]])


@ti.data_oriented
class PlainLaunches(Variant):
    """Grid entries are (momentum, mass) while scattering, then (velocity, mass); adjoints likewise."""

    def __init__(self, scene: BenchScene) -> None:
        self.n, self.nodes, self.steps = scene.n, scene.nodes, scene.steps
        self.dt, self.dx, self.inv_dx = scene.dt, scene.dx, float(scene.nodes)
        self.mass, self.kick = scene.particle_mass, scene.gravity * scene.dt
        self.stress_scale = scene.particle_volume * 4.0 * self.inv_dx**2 * scene.dt
        slots, n, nodes = scene.slots + 1, self.n, self.nodes
        self.x, self.v = ti.ndarray(vec2, (slots, n)), ti.ndarray(vec2, (slots, n))
        self.C, self.F = ti.ndarray(mat2, (slots, n)), ti.ndarray(mat2, (slots, n))
        self.x_bar, self.v_bar = ti.ndarray(vec2, (1, n)), ti.ndarray(vec2, (1, n))
        self.C_bar, self.F_bar = ti.ndarray(mat2, (1, n)), ti.ndarray(mat2, (1, n))
        self.momentum, self.grids = ti.ndarray(vec3, (nodes, nodes)), ti.ndarray(vec3, (slots, nodes, nodes))
        self.velocity_bar, self.momentum_bar = ti.ndarray(vec3, (nodes, nodes)), ti.ndarray(vec3, (nodes, nodes))
        self.start = (scene.sorted_positions() + PAD * scene.dx).astype(np.float32)
        self.start_velocity = ti.Vector(list(scene.velocity), ti.f32)
        self.differentiated = False

    @ti.kernel
    def reset(self, x: Vectors, v: Vectors, C: Matrices, F: Matrices, start: ti.types.ndarray(), u: vec2):
        for p in range(self.n):
            x[0, p] = ti.Vector([start[p, 0], start[p, 1]])
            v[0, p] = u
            C[0, p] = ti.Matrix.zero(ti.f32, 2, 2)
            F[0, p] = ti.Matrix.identity(ti.f32, 2)

    @ti.kernel
    def scatter(self, x: Vectors, v: Vectors, C: Matrices, F: Matrices, momentum: Grid, t: ti.i32):
        ti.loop_config(serialize=True)
        for p in range(self.n):
            base = ti.cast(x[t, p] * self.inv_dx - 0.5, ti.i32)
            fx = x[t, p] * self.inv_dx - ti.cast(base, ti.f32)
            w = weights(fx)
            identity = ti.Matrix.identity(ti.f32, 2)
            F_next = (identity + self.dt * C[t, p]) @ F[t, p]
            F[t + 1, p] = F_next
            stress = MU * (F_next @ F_next.transpose() - identity) + LAMBDA * ti.log(F_next.determinant()) * identity
            affine = self.mass * C[t, p] - self.stress_scale * stress
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                distance = (ti.Vector([i, j], ti.f32) - fx) * self.dx
                q = self.mass * v[t, p] + affine @ distance
                index = base + ti.Vector([i, j])
                momentum[index] = momentum[index] + weight * ti.Vector([q[0], q[1], self.mass])

    @ti.kernel
    def update_grid(self, momentum: Grid, grids: Grids, t: ti.i32):
        for i, j in momentum:
            node = momentum[i, j]
            momentum[i, j] = ti.Vector.zero(ti.f32, 3)
            v = ti.Vector.zero(ti.f32, 2)
            if node[2] > 0.0:
                v = ti.Vector([node[0] / node[2], node[1] / node[2] + self.kick])
                index = ti.Vector([i, j])
                for d in ti.static(range(2)):
                    if index[d] <= PAD:
                        v[d] = ti.max(v[d], 0.0)
                    if index[d] >= self.nodes - PAD:
                        v[d] = ti.min(v[d], 0.0)
            grids[t, i, j] = ti.Vector([v[0], v[1], node[2]])

    @ti.kernel
    def gather(self, x: Vectors, v: Vectors, C: Matrices, grids: Grids, t: ti.i32):
        for p in range(self.n):
            base = ti.cast(x[t, p] * self.inv_dx - 0.5, ti.i32)
            fx = x[t, p] * self.inv_dx - ti.cast(base, ti.f32)
            w = weights(fx)
            new_v = ti.Vector.zero(ti.f32, 2)
            new_C = ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                node = grids[t, base[0] + i, base[1] + j]
                weighted = w[i, 0] * w[j, 1] * ti.Vector([node[0], node[1]])
                new_v = new_v + weighted
                new_C = new_C + weighted.outer_product(ti.Vector([i, j], ti.f32) - fx)
            v[t + 1, p] = new_v
            C[t + 1, p] = 4.0 * self.inv_dx * new_C
            x[t + 1, p] = x[t, p] + self.dt * new_v

    @ti.kernel
    def seed(self, x_bar: Vectors, v_bar: Vectors, C_bar: Matrices, F_bar: Matrices):
        for p in range(self.n):
            x_bar[0, p] = ti.Vector([0.0, 1.0 / self.n])
            v_bar[0, p] = ti.Vector.zero(ti.f32, 2)
            C_bar[0, p] = ti.Matrix.zero(ti.f32, 2, 2)
            F_bar[0, p] = ti.Matrix.zero(ti.f32, 2, 2)

    @ti.kernel
    def gather_adjoint(
        self, x: Vectors, grids: Grids, x_bar: Vectors, v_bar: Vectors, C_bar: Matrices, velocity_bar: Grid, t: ti.i32
    ):
        ti.loop_config(serialize=True)
        for p in range(self.n):
            base = ti.cast(x[t, p] * self.inv_dx - 0.5, ti.i32)
            fx = x[t, p] * self.inv_dx - ti.cast(base, ti.f32)
            w, s = weights(fx), slopes(fx, self.inv_dx)
            out = v_bar[0, p] + self.dt * x_bar[0, p]
            affine = 4.0 * self.inv_dx * C_bar[0, p]
            position = x_bar[0, p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                slope = ti.Vector([s[i, 0] * w[j, 1], w[i, 0] * s[j, 1]])
                index = base + ti.Vector([i, j])
                node = grids[t, index[0], index[1]]
                v = ti.Vector([node[0], node[1]])
                u = out + affine @ (ti.Vector([i, j], ti.f32) - fx)
                velocity_bar[index] = velocity_bar[index] + weight * ti.Vector([u[0], u[1], 0.0])
                position = position + v.dot(u) * slope - weight * self.inv_dx * (affine.transpose() @ v)
            x_bar[0, p] = position

    @ti.kernel
    def update_grid_adjoint(self, grids: Grids, velocity_bar: Grid, momentum_bar: Grid, t: ti.i32):
        for i, j in velocity_bar:
            bar = velocity_bar[i, j]
            velocity_bar[i, j] = ti.Vector.zero(ti.f32, 3)
            node = grids[t, i, j]
            result = ti.Vector.zero(ti.f32, 3)
            if node[2] > 0.0:
                index = ti.Vector([i, j])
                for d in ti.static(range(2)):
                    on_wall = index[d] <= PAD or index[d] >= self.nodes - PAD
                    if not (on_wall and node[d] == 0.0):
                        free = node[d] - self.kick * d
                        result[d] = bar[d] / node[2]
                        result[2] -= bar[d] * free / node[2]
            momentum_bar[i, j] = result

    @ti.kernel
    def scatter_adjoint(
        self,
        x: Vectors,
        v: Vectors,
        C: Matrices,
        F: Matrices,
        x_bar: Vectors,
        v_bar: Vectors,
        C_bar: Matrices,
        F_bar: Matrices,
        momentum_bar: Grid,
        t: ti.i32,
    ):
        for p in range(self.n):
            base = ti.cast(x[t, p] * self.inv_dx - 0.5, ti.i32)
            fx = x[t, p] * self.inv_dx - ti.cast(base, ti.f32)
            w, s = weights(fx), slopes(fx, self.inv_dx)
            identity = ti.Matrix.identity(ti.f32, 2)
            F_next = F[t + 1, p]
            inverse = F_next.inverse()
            stress = MU * (F_next @ F_next.transpose() - identity) + LAMBDA * ti.log(F_next.determinant()) * identity
            affine = self.mass * C[t, p] - self.stress_scale * stress
            position = x_bar[0, p]
            total = ti.Vector.zero(ti.f32, 2)
            affine_bar = ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                slope = ti.Vector([s[i, 0] * w[j, 1], w[i, 0] * s[j, 1]])
                distance = (ti.Vector([i, j], ti.f32) - fx) * self.dx
                node = momentum_bar[base + ti.Vector([i, j])]
                bar = ti.Vector([node[0], node[1]])
                q = self.mass * v[t, p] + affine @ distance
                position = position + (bar.dot(q) + node[2] * self.mass) * slope
                total = total + weight * bar
                affine_bar = affine_bar + weight * bar.outer_product(distance)
            x_bar[0, p] = position - affine.transpose() @ total
            v_bar[0, p] = self.mass * total
            stress_bar = -self.stress_scale * affine_bar
            F_next_bar = F_bar[0, p] + MU * (stress_bar + stress_bar.transpose()) @ F_next
            F_next_bar = F_next_bar + LAMBDA * stress_bar.trace() * inverse.transpose()
            C_bar[0, p] = self.mass * affine_bar + self.dt * F_next_bar @ F[t, p].transpose()
            F_bar[0, p] = (identity + self.dt * C[t, p]).transpose() @ F_next_bar

    def forward(self) -> None:
        particles = (self.x, self.v, self.C, self.F)
        self.reset(*particles, self.start, self.start_velocity)
        for t in range(self.steps):
            self.scatter(*particles, self.momentum, t)
            self.update_grid(self.momentum, self.grids, t)
            self.gather(self.x, self.v, self.C, self.grids, t)
        ti.sync()

    def forward_backward(self) -> None:
        self.forward()
        particles = (self.x, self.v, self.C, self.F)
        adjoints = (self.x_bar, self.v_bar, self.C_bar, self.F_bar)
        self.seed(*adjoints)
        for t in reversed(range(self.steps)):
            self.gather_adjoint(self.x, self.grids, *adjoints[:3], self.velocity_bar, t)
            self.update_grid_adjoint(self.grids, self.velocity_bar, self.momentum_bar, t)
            self.scatter_adjoint(*particles, *adjoints, self.momentum_bar, t)
        self.differentiated = True
        ti.sync()

    def result(self) -> Result:
        height = float(self.x.to_numpy()[self.steps, :, 1].mean(dtype=np.float64)) - PAD * self.dx
        return gradient_result(height, self.v_bar.to_numpy()[0] if self.differentiated else None)


def load(scene: BenchScene, threads: int) -> PlainLaunches:
    if scene.dim != 2 or scene.friction or scene.muscle or scene.environments > 1:
        raise Unavailable("written for the bare box in 2-D alone")
    ti.init(arch=ti.cpu, default_fp=ti.f32, cpu_max_num_threads=threads, offline_cache=True, log_level=ti.ERROR)
    return PlainLaunches(scene)
