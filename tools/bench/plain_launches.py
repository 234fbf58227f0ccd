"""The same 2-D step with hand-written adjoints, every kernel an ordinary Taichi call on ndarrays.

What small scenes cost when each step pays for its launches: three going forward, three coming back. A call costs the
more the more arrays it is given (four: three times a call on fields), so a particle is one packed row. The grid of
every step is stored, so that nothing is computed twice; the scatter of so few particles is serial, without atomics.
Neo-Hookean, Kirchhoff stress mu (F F^T - I) + lambda ln J I.
"""

import os

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")

import numpy as np
import taichi as ti

from bench.scenes import LAMBDA, MU, PAD, BenchScene
from bench.variant import Result, Unavailable, Variant, gradient_result

vec3 = ti.types.vector(3, ti.f32)
row12 = ti.types.vector(12, ti.f32)
Particles = ti.types.ndarray(dtype=row12, ndim=2)
Grid = ti.types.ndarray(dtype=vec3, ndim=2)
Grids = ti.types.ndarray(dtype=vec3, ndim=3)


@ti.func
def unpack(row):
    """Position, velocity, affine velocity and deformation of a particle (or their adjoints)."""
    x, v = ti.Vector([row[0], row[1]]), ti.Vector([row[2], row[3]])
    C, F = ti.Matrix([[row[4], row[5]], [row[6], row[7]]]), ti.Matrix([[row[8], row[9]], [row[10], row[11]]])
    return x, v, C, F


@ti.func
def pack(x, v, C, F):
    """The row that :func:`unpack` takes apart."""
    return ti.Vector([x[0], x[1], v[0], v[1], C[0, 0], C[0, 1], C[1, 0], C[1, 1], F[0, 0], F[0, 1], F[1, 0], F[1, 1]])


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
        self.state, self.bar = ti.ndarray(row12, (slots, n)), ti.ndarray(row12, (1, n))
        self.momentum, self.grids = ti.ndarray(vec3, (nodes, nodes)), ti.ndarray(vec3, (slots, nodes, nodes))
        self.velocity_bar, self.momentum_bar = ti.ndarray(vec3, (nodes, nodes)), ti.ndarray(vec3, (nodes, nodes))
        start = np.zeros((n, 12), np.float32)
        start[:, 0:2] = scene.sorted_positions() + PAD * scene.dx
        start[:, 2:4] = scene.velocity
        start[:, 8] = start[:, 11] = 1.0
        self.start = start
        self.differentiated = False

    @ti.kernel
    def reset(self, state: Particles, start: ti.types.ndarray()):
        for p in range(self.n):
            for c in ti.static(range(12)):
                state[0, p][c] = start[p, c]

    @ti.kernel
    def scatter(self, state: Particles, momentum: Grid, t: ti.i32):
        ti.loop_config(serialize=True)
        for p in range(self.n):
            x, v, C, F = unpack(state[t, p])
            base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
            fx = x * self.inv_dx - ti.cast(base, ti.f32)
            w = weights(fx)
            identity = ti.Matrix.identity(ti.f32, 2)
            F_next = (identity + self.dt * C) @ F
            for i, j in ti.static(ti.ndrange(2, 2)):
                state[t + 1, p][8 + 2 * i + j] = F_next[i, j]
            stress = MU * (F_next @ F_next.transpose() - identity) + LAMBDA * ti.log(F_next.determinant()) * identity
            affine = self.mass * C - self.stress_scale * stress
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                distance = (ti.Vector([i, j], ti.f32) - fx) * self.dx
                q = self.mass * v + affine @ distance
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
    def gather(self, state: Particles, grids: Grids, t: ti.i32):
        for p in range(self.n):
            x, _v, _C, _F = unpack(state[t, p])
            base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
            fx = x * self.inv_dx - ti.cast(base, ti.f32)
            w = weights(fx)
            v = ti.Vector.zero(ti.f32, 2)
            C = ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                node = grids[t, base[0] + i, base[1] + j]
                weighted = w[i, 0] * w[j, 1] * ti.Vector([node[0], node[1]])
                v = v + weighted
                C = C + 4.0 * self.inv_dx * weighted.outer_product(ti.Vector([i, j], ti.f32) - fx)
            x = x + self.dt * v
            for i in ti.static(range(2)):
                state[t + 1, p][i] = x[i]
                state[t + 1, p][2 + i] = v[i]
                for j in ti.static(range(2)):
                    state[t + 1, p][4 + 2 * i + j] = C[i, j]

    @ti.kernel
    def seed(self, bar: Particles):
        for p in range(self.n):
            bar[0, p] = ti.Vector.zero(ti.f32, 12)
            bar[0, p][1] = 1.0 / self.n

    @ti.kernel
    def gather_adjoint(self, state: Particles, grids: Grids, bar: Particles, velocity_bar: Grid, t: ti.i32):
        ti.loop_config(serialize=True)
        for p in range(self.n):
            x, _v, _C, _F = unpack(state[t, p])
            x_bar, v_bar, C_bar, _F_bar = unpack(bar[0, p])
            base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
            fx = x * self.inv_dx - ti.cast(base, ti.f32)
            w, s = weights(fx), slopes(fx, self.inv_dx)
            out = v_bar + self.dt * x_bar
            affine = 4.0 * self.inv_dx * C_bar
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                slope = ti.Vector([s[i, 0] * w[j, 1], w[i, 0] * s[j, 1]])
                index = base + ti.Vector([i, j])
                node = grids[t, index[0], index[1]]
                v = ti.Vector([node[0], node[1]])
                u = out + affine @ (ti.Vector([i, j], ti.f32) - fx)
                velocity_bar[index] = velocity_bar[index] + weight * ti.Vector([u[0], u[1], 0.0])
                x_bar = x_bar + v.dot(u) * slope - weight * self.inv_dx * (affine.transpose() @ v)
            for i in ti.static(range(2)):
                bar[0, p][i] = x_bar[i]

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
    def scatter_adjoint(self, state: Particles, bar: Particles, momentum_bar: Grid, t: ti.i32):
        for p in range(self.n):
            x, v, C, F = unpack(state[t, p])
            _x, _v, _C, F_next = unpack(state[t + 1, p])
            x_bar, _v_bar, _C_bar, F_bar = unpack(bar[0, p])
            base = ti.cast(x * self.inv_dx - 0.5, ti.i32)
            fx = x * self.inv_dx - ti.cast(base, ti.f32)
            w, s = weights(fx), slopes(fx, self.inv_dx)
            identity = ti.Matrix.identity(ti.f32, 2)
            stress = MU * (F_next @ F_next.transpose() - identity) + LAMBDA * ti.log(F_next.determinant()) * identity
            affine = self.mass * C - self.stress_scale * stress
            total = ti.Vector.zero(ti.f32, 2)
            affine_bar = ti.Matrix.zero(ti.f32, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i, 0] * w[j, 1]
                slope = ti.Vector([s[i, 0] * w[j, 1], w[i, 0] * s[j, 1]])
                distance = (ti.Vector([i, j], ti.f32) - fx) * self.dx
                node = momentum_bar[base + ti.Vector([i, j])]
                q_bar = ti.Vector([node[0], node[1]])
                q = self.mass * v + affine @ distance
                x_bar = x_bar + (q_bar.dot(q) + node[2] * self.mass) * slope
                total = total + weight * q_bar
                affine_bar = affine_bar + weight * q_bar.outer_product(distance)
            x_bar = x_bar - affine.transpose() @ total
            stress_bar = -self.stress_scale * affine_bar
            F_next_bar = F_bar + MU * (stress_bar + stress_bar.transpose()) @ F_next
            F_next_bar = F_next_bar + LAMBDA * stress_bar.trace() * F_next.inverse().transpose()
            C_bar = self.mass * affine_bar + self.dt * F_next_bar @ F.transpose()
            F_bar = (identity + self.dt * C).transpose() @ F_next_bar
            bar[0, p] = pack(x_bar, self.mass * total, C_bar, F_bar)

    def forward(self) -> None:
        self.reset(self.state, self.start)
        for t in range(self.steps):
            self.scatter(self.state, self.momentum, t)
            self.update_grid(self.momentum, self.grids, t)
            self.gather(self.state, self.grids, t)
        ti.sync()

    def forward_backward(self) -> None:
        self.forward()
        self.seed(self.bar)
        for t in reversed(range(self.steps)):
            self.gather_adjoint(self.state, self.grids, self.bar, self.velocity_bar, t)
            self.update_grid_adjoint(self.grids, self.velocity_bar, self.momentum_bar, t)
            self.scatter_adjoint(self.state, self.bar, self.momentum_bar, t)
        self.differentiated = True
        ti.sync()

    def result(self) -> Result:
        height = self.state.to_numpy()[self.steps, :, 1].mean(dtype=np.float64) - PAD * self.dx
        return gradient_result(float(height), self.bar.to_numpy()[0, :, 2:4] if self.differentiated else None)


def load(scene: BenchScene, threads: int) -> PlainLaunches:
    if scene.dim != 2 or scene.friction or scene.muscle or scene.environments > 1:
        raise Unavailable("written for the bare box in 2-D alone")
    ti.init(arch=ti.cpu, default_fp=ti.f32, cpu_max_num_threads=threads, offline_cache=True, log_level=ti.ERROR)
    return PlainLaunches(scene)
