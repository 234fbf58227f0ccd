"""The usual differentiable Taichi program of this step, as in the DiffTaichi examples.

Fields hold the particles of every step, the scatter uses atomics, the gradient is Taichi's own (``kernel.grad``) and
the grid of a step is computed again on the way back. Stencils are ``ti.static`` loops: autodiff through runtime inner
loops that hold loads is silently wrong. The price is a cold compilation of minutes in 3-D; it is kept in Taichi's
cache, so later starts are quick. Neo-Hookean, Kirchhoff stress mu (F F^T - I) + lambda ln J I.
"""

import os

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")

import numpy as np
import taichi as ti

from bench.scenes import LAMBDA, MU, PAD, BenchScene
from bench.variant import Result, Unavailable, Variant, gradient_result


@ti.data_oriented
class DiffTaichiStyle(Variant):
    def __init__(self, scene: BenchScene) -> None:
        dim = self.dim = scene.dim
        self.n, self.nodes, self.steps = scene.n, scene.nodes, scene.steps
        self.dt, self.dx, self.inv_dx = scene.dt, scene.dx, float(scene.nodes)
        self.mass, self.volume, self.gravity = scene.particle_mass, scene.particle_volume, scene.gravity
        self.differentiated = False

        self.x = ti.Vector.field(dim, ti.f32, needs_grad=True)
        self.v = ti.Vector.field(dim, ti.f32, needs_grad=True)
        self.C = ti.Matrix.field(dim, dim, ti.f32, needs_grad=True)
        self.F = ti.Matrix.field(dim, dim, ti.f32, needs_grad=True)
        self.grid_momentum = ti.Vector.field(dim, ti.f32, needs_grad=True)
        self.grid_mass = ti.field(ti.f32, needs_grad=True)
        self.grid_velocity = ti.Vector.field(dim, ti.f32, needs_grad=True)
        self.height = ti.field(ti.f32, shape=(), needs_grad=True)
        ti.root.dense(ti.ij, (scene.slots + 1, self.n)).place(self.x, self.v, self.C, self.F)
        cells = ti.root.dense(ti.ijk if dim == 3 else ti.ij, (self.nodes,) * dim)
        cells.place(self.grid_momentum, self.grid_mass)
        cells.place(self.grid_velocity)
        ti.root.lazy_grad()
        self.start = (scene.sorted_positions() + PAD * scene.dx).astype(np.float32)
        self.start_velocity = np.tile(np.array(scene.velocity, np.float32), (self.n, 1))

    @ti.kernel
    def reset(self, position: ti.types.ndarray(), velocity: ti.types.ndarray()):
        for p in range(self.n):
            for d in ti.static(range(self.dim)):
                self.x[0, p][d] = position[p, d]
                self.v[0, p][d] = velocity[p, d]
            self.C[0, p] = ti.Matrix.zero(ti.f32, self.dim, self.dim)
            self.F[0, p] = ti.Matrix.identity(ti.f32, self.dim)

    @ti.kernel
    def clear_grid(self):
        for I in ti.grouped(self.grid_mass):
            self.grid_momentum[I] = ti.Vector.zero(ti.f32, self.dim)
            self.grid_mass[I] = 0.0

    @ti.kernel
    def clear_grid_and_adjoints(self):
        for I in ti.grouped(self.grid_mass):
            self.grid_momentum[I] = ti.Vector.zero(ti.f32, self.dim)
            self.grid_mass[I] = 0.0
            self.grid_momentum.grad[I] = ti.Vector.zero(ti.f32, self.dim)
            self.grid_mass.grad[I] = 0.0
            self.grid_velocity.grad[I] = ti.Vector.zero(ti.f32, self.dim)

    @ti.kernel
    def clear_particle_adjoints(self):
        for f, p in self.x:
            self.x.grad[f, p] = ti.Vector.zero(ti.f32, self.dim)
            self.v.grad[f, p] = ti.Vector.zero(ti.f32, self.dim)
            self.C.grad[f, p] = ti.Matrix.zero(ti.f32, self.dim, self.dim)
            self.F.grad[f, p] = ti.Matrix.zero(ti.f32, self.dim, self.dim)

    @ti.kernel
    def scatter(self, f: ti.i32):
        for p in range(self.n):
            base = ti.cast(self.x[f, p] * self.inv_dx - 0.5, ti.i32)
            fx = self.x[f, p] * self.inv_dx - ti.cast(base, ti.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            identity = ti.Matrix.identity(ti.f32, self.dim)
            F = (identity + self.dt * self.C[f, p]) @ self.F[f, p]
            self.F[f + 1, p] = F
            stress = MU * (F @ F.transpose() - identity) + LAMBDA * ti.log(F.determinant()) * identity
            affine = self.mass * self.C[f, p] - (self.volume * 4.0 * self.inv_dx * self.inv_dx * self.dt) * stress
            for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * self.dim)))):
                weight = ti.cast(1.0, ti.f32)
                for d in ti.static(range(self.dim)):
                    weight *= w[offset[d]][d]
                distance = (ti.cast(offset, ti.f32) - fx) * self.dx
                self.grid_momentum[base + offset] += weight * (self.mass * self.v[f, p] + affine @ distance)
                self.grid_mass[base + offset] += weight * self.mass

    @ti.kernel
    def update_grid(self):
        for I in ti.grouped(self.grid_mass):
            if self.grid_mass[I] > 0.0:
                v = self.grid_momentum[I] / self.grid_mass[I]
                v[self.dim - 1] += self.dt * self.gravity
                for d in ti.static(range(self.dim)):
                    if I[d] <= PAD and v[d] < 0.0:
                        v[d] = 0.0
                    if I[d] >= self.nodes - PAD and v[d] > 0.0:
                        v[d] = 0.0
                self.grid_velocity[I] = v

    @ti.kernel
    def gather(self, f: ti.i32):
        for p in range(self.n):
            base = ti.cast(self.x[f, p] * self.inv_dx - 0.5, ti.i32)
            fx = self.x[f, p] * self.inv_dx - ti.cast(base, ti.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            v = ti.Vector.zero(ti.f32, self.dim)
            C = ti.Matrix.zero(ti.f32, self.dim, self.dim)
            for offset in ti.static(ti.grouped(ti.ndrange(*((3,) * self.dim)))):
                weight = ti.cast(1.0, ti.f32)
                for d in ti.static(range(self.dim)):
                    weight *= w[offset[d]][d]
                weighted = weight * self.grid_velocity[base + offset]
                v += weighted
                C += 4.0 * self.inv_dx * weighted.outer_product(ti.cast(offset, ti.f32) - fx)
            self.v[f + 1, p] = v
            self.C[f + 1, p] = C
            self.x[f + 1, p] = self.x[f, p] + self.dt * v

    @ti.kernel
    def mean_height(self):
        for p in range(self.n):
            self.height[None] += self.x[self.steps, p][self.dim - 1] / self.n

    @ti.kernel
    def read(self, height: ti.types.ndarray(), gradient: ti.types.ndarray()):
        for p in range(self.n):
            height[p] = self.x[self.steps, p][self.dim - 1]
            for d in ti.static(range(self.dim)):
                gradient[p, d] = self.v.grad[0, p][d]

    def forward(self) -> None:
        self.reset(self.start, self.start_velocity)
        for f in range(self.steps):
            self.clear_grid()
            self.scatter(f)
            self.update_grid()
            self.gather(f)
        self.height[None] = 0.0
        self.mean_height()
        ti.sync()

    def forward_backward(self) -> None:
        self.forward()
        self.clear_particle_adjoints()
        self.height.grad[None] = 1.0
        self.mean_height.grad()
        for f in reversed(range(self.steps)):
            self.clear_grid_and_adjoints()
            self.scatter(f)
            self.update_grid()
            self.gather.grad(f)
            self.update_grid.grad()
            self.scatter.grad(f)
        self.differentiated = True
        ti.sync()

    def result(self) -> Result:
        height = np.zeros(self.n, np.float32)
        gradient = np.zeros((self.n, self.dim), np.float32)
        self.read(height, gradient)
        mean_height = height.mean(dtype=np.float64) - PAD * self.dx
        return gradient_result(float(mean_height), gradient if self.differentiated else None)


def load(scene: BenchScene, threads: int) -> DiffTaichiStyle:
    if scene.friction or scene.muscle or scene.environments > 1:
        raise Unavailable("written for the bare box alone")
    ti.init(arch=ti.cpu, default_fp=ti.f32, cpu_max_num_threads=threads, offline_cache=True, log_level=ti.ERROR)
    return DiffTaichiStyle(scene)
