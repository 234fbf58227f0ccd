"""The declaration of a physical quantity: everything else about it is derived from this."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taichi_sim.runtime import ti

ROLES = ("state", "param", "input", "scratch")


@dataclass(frozen=True)
class Array:
    """One named physical quantity.

    ``element`` is the shape of one value: ``()``, ``("dim",)``, ``("dim", "dim")`` or plain numbers. ``domain`` names
    what it lives on (``particle``, ``node``, ``env``, …; a tuple for several axes); sizes are known when a scene is
    compiled.

    ``role`` decides what leads the shape and what its adjoint looks like:

    ========= ======================= =====================================================
    role      shape                   adjoint ``d_<name>``
    ========= ======================= =====================================================
    state     (slots, domain)         (domain), updated in place as the sweep moves backwards
    param     (domain)                (partitions, domain) in f64, one private copy a partition
    input     (frames, domain)        (partitions, frames, domain) in f64
    scratch   (domain)                none
    ========= ======================= =====================================================

    Adjoints of parameters sum over millions of particle-substeps: they are always f64, and every partition (a fixed
    share of the particles of an environment, independent of threads) has its own copy, so that sums need no atomics
    and no order is left to chance. ``exclusive`` parameters are touched by one partition only and need no copies.
    """

    name: str
    element: tuple[Any, ...]
    domain: str | tuple[str, ...]
    role: str
    unit: str
    doc: str
    dtype: str = "real"
    exclusive: bool = False
    differentiable: bool = True

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"array {self.name!r}: role must be one of {ROLES}, got {self.role!r}")

    def domain_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Sizes of the domain's axes."""
        axes = (self.domain,) if isinstance(self.domain, str) else self.domain
        return tuple(max(1, sizes[axis]) for axis in axes)

    def element_shape(self, dim: int) -> tuple[int, ...]:
        """Shape of one value in ``dim`` dimensions."""
        return tuple(dim if size == "dim" else int(size) for size in self.element)

    def taichi_type(self, real: Any, dim: int):
        """Taichi's element type of this array, where real numbers are ``real``."""
        scalar = ti.i32 if self.dtype == "int" else real
        shape = self.element_shape(dim)
        if not shape:
            return scalar
        return ti.types.vector(shape[0], scalar) if len(shape) == 1 else ti.types.matrix(*shape, scalar)

    def bytes_each(self, precision: str, dim: int) -> int:
        """Bytes of one value."""
        count = 1
        for size in self.element_shape(dim):
            count *= size
        return count * (4 if self.dtype == "int" or (self.dtype == "real" and precision == "f32") else 8)
