"""Quadratic B-spline weights of the three nearest nodes an axis (Steffen, Kirby, Berzins 2008)."""

from taichi_sim.runtime import ti

#: Tells LLVM that a node index is small and not negative, so that four components are provably contiguous and the
#: scatter becomes one vector load, add, store.
NODE_MASK = 0x07FFFFFF


@ti.func
def weights(dim: ti.template(), fx):
    """``w[i, d]`` of node ``i`` at offset ``i - fx[d]`` cells, ``fx`` in [0.5, 1.5)."""
    return ti.Matrix.rows(
        [0.5 * (1.5 - fx) * (1.5 - fx), 0.75 - (fx - 1.0) * (fx - 1.0), 0.5 * (fx - 0.5) * (fx - 0.5)]
    )


@ti.func
def weights_derivative(dim: ti.template(), fx, inverse_spacing):
    """d``weights``/d``x`` (1/m)."""
    return ti.Matrix.rows([
        (fx - 1.5) * inverse_spacing, (-2.0 * inverse_spacing) * (fx - 1.0), (fx - 0.5) * inverse_spacing
    ])
