"""A shape filled with squares or cubes of springs."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.networks.network import NetworkKind, networks
from taichi_sim.scene.shapes.shape import Context, resolve_shape
from taichi_sim.solvers.particles.network import Network, lattice

#: Points a lattice may have.
MOST = 5_000_000


def _build(values: dict[str, Any], dim: int, context: Context) -> Network:
    shape = resolve_shape(values["shape"], dim, f"{context.path}.shape", context.folder)
    lower, upper = shape.bounds()
    extent, spacing = upper - lower, float(values["spacing"])
    count = np.rint(extent / spacing).astype(int)
    if (count < 1).any() or np.prod(count + 1.0) > MOST:
        what = "too large" if (count < 1).any() else "too small"
        raise ValueError(f"spacing = {spacing:g} m is {what} for a shape of {' x '.join(f'{e:.3g}' for e in extent)} m")
    whole = lattice(count.tolist(), 1.0, braced=bool(values["braced"]))
    points = lower + whole.points * (extent / count)
    near = 1e-6 * spacing  # a point on the boundary is inside

    def inside(where: np.ndarray) -> np.ndarray:
        return shape.signed_distance(where) <= near

    a, b = whole.edges.T
    kept = inside(points)
    edges = whole.edges[kept[a] & kept[b] & inside(0.5 * (points[a] + points[b]))]
    used = np.zeros(len(points), bool)
    used[edges] = True
    if not used.any():
        raise ValueError(f"no spring falls inside the shape; make spacing = {spacing:g} m smaller")
    renumber = np.cumsum(used) - 1
    cells = whole.cells[used[whole.cells].all(axis=1)]
    return Network(points[used], renumber[edges], whole.bends, renumber[cells])


networks.add(
    NetworkKind(
        name="lattice",
        doc="a shape filled with squares or cubes of springs",
        parameters=(
            Parameter("shape", "", None, "geometry before the pose", kind="shape", differentiable=False),
            Parameter("spacing", "m", None, "distance of neighbours", low=0.0, low_open=True, differentiable=False),
            Parameter(
                "braced", "", True, "springs along the diagonals too, against shear", kind="flag", differentiable=False
            ),
        ),
        build=_build,
    )
)
