"""Gaussian elimination within the envelope of a matrix most of which is zero.

What is left out is zero: the numbers are those of elimination with all rows and columns.
"""

from typing import Any

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.groups import body_at
from taichi_sim.solvers.rigid.twist import DELTA, LAST_COLUMN, LAST_ROW


def block_of(dim: int, J: Any) -> int:
    """Unknowns of a body; 0 where they are those of joints."""
    return 0 if J.on else (3 if dim == 2 else 6)


@ti.func
def unknown_at(block: ti.template(), at, begin, p, dof: ti.template()):
    """Row of ``dof`` of unknown ``p`` of the group that begins at place ``begin``, with ``block`` unknowns a body; 0:
    unknowns stand in their own order."""
    out = at + p
    if ti.static(block > 0):
        out = at + body_at(block, at, begin + p // block, dof) * block + p % block
    return out


@ti.func
def eliminate(block: ti.template(), at, begin, base, n, dof: ti.template(), matrix: ti.template()):
    """Solve ``matrix x = DELTA`` in place, with partial pivoting; the matrix begins at ``base``, its unknowns are those
    of :func:`unknown_at`.

    Rows below the last row of a column are zero in it and in all before, whatever rows above have been exchanged.
    """
    for i in range(n):
        dof[at + i, LAST_ROW] = 0.0
    for i in range(n):
        left, right = 0, n - 1
        while left < i and matrix[base + i * n + left] == 0.0:
            left = left + 1
        while right > i and matrix[base + i * n + right] == 0.0:
            right = right - 1
        dof[at + i, LAST_COLUMN] = ti.cast(right, float)
        dof[at + left, LAST_ROW] = ti.cast(i, float)
    lowest = 0
    for p in range(n):
        lowest = ti.max(lowest, ti.cast(dof[at + p, LAST_ROW], ti.i32))
        best, largest = p, ti.abs(matrix[base + p * n + p])
        for i in range(p + 1, lowest + 1):
            size = ti.abs(matrix[base + i * n + p])
            if size > largest:
                best, largest = i, size
        mine = unknown_at(block, at, begin, p, dof)
        if best != p:
            right = ti.max(dof[at + p, LAST_COLUMN], dof[at + best, LAST_COLUMN])
            for j in range(p, ti.cast(right, ti.i32) + 1):
                swap = matrix[base + p * n + j]
                matrix[base + p * n + j] = matrix[base + best * n + j]
                matrix[base + best * n + j] = swap
            kept = dof[at + p, LAST_COLUMN]
            dof[at + p, LAST_COLUMN] = dof[at + best, LAST_COLUMN]
            dof[at + best, LAST_COLUMN] = kept
            theirs = unknown_at(block, at, begin, best, dof)
            other = dof[mine, DELTA]
            dof[mine, DELTA] = dof[theirs, DELTA]
            dof[theirs, DELTA] = other
        right = ti.cast(dof[at + p, LAST_COLUMN], ti.i32)
        for i in range(p + 1, lowest + 1):
            factor = matrix[base + i * n + p] / matrix[base + p * n + p]
            if factor != 0.0:
                for j in range(p + 1, right + 1):
                    matrix[base + i * n + j] = matrix[base + i * n + j] - factor * matrix[base + p * n + j]
                dof[at + i, LAST_COLUMN] = ti.max(dof[at + i, LAST_COLUMN], ti.cast(right, float))
                theirs = unknown_at(block, at, begin, i, dof)
                dof[theirs, DELTA] = dof[theirs, DELTA] - factor * dof[mine, DELTA]
    for back in range(n):
        i = n - 1 - back
        mine = unknown_at(block, at, begin, i, dof)
        total = dof[mine, DELTA]
        for j in range(i + 1, ti.cast(dof[at + i, LAST_COLUMN], ti.i32) + 1):
            total = total - matrix[base + i * n + j] * dof[unknown_at(block, at, begin, j, dof), DELTA]
        dof[mine, DELTA] = total / matrix[base + i * n + i]
