"""Contacts as users see them: a table, one row each."""

from collections.abc import Sequence

import numpy as np


def contact_table(
    dim: int,
    env: np.ndarray,
    sides: Sequence[tuple[str, str]],
    point: np.ndarray,
    normal: np.ndarray,
    impulse: np.ndarray,
    force: np.ndarray,
    gap: np.ndarray,
) -> np.ndarray:
    """A structured array (contacts,).

    ``env``; ``a`` and ``b``, the paths of what touches (``rigid.cube``, ``domain.walls.z_lower``, ``obstacles.ramp``);
    ``point`` (dim,) m and ``normal`` (dim,) from b to a, NaN where there are many of them in one row; ``impulse``
    (dim,) N s on a in the last step, and ``force`` (dim,) N, the impulse over the length of the kick; ``gap`` m at the
    step's beginning.
    """
    width = max((len(name) for pair in sides for name in pair), default=1)
    vector = (np.float64, (dim,))
    table = np.zeros(
        len(env),
        [("env", np.int64), ("a", f"U{width}"), ("b", f"U{width}"), ("point", *vector), ("normal", *vector),
         ("impulse", *vector), ("force", *vector), ("gap", np.float64)],
    )  # fmt: skip
    table["env"], table["point"], table["normal"], table["gap"] = env, point, normal, gap
    table["impulse"], table["force"] = impulse, force
    for column, names in zip(("a", "b"), zip(*sides, strict=True), strict=False):
        table[column] = names
    return table


def joined_tables(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The rows of two tables of contacts in one."""
    both = (first, second)
    sides = [(str(row["a"]), str(row["b"])) for table in both for row in table]
    names = ("env", "point", "normal", "impulse", "force", "gap")
    env, point, normal, impulse, force, gap = (np.concatenate([table[name] for table in both]) for name in names)
    return contact_table(first["point"].shape[1], env, sides, point, normal, impulse, force, gap)
