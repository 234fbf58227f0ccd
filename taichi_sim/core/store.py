"""Memory of a compiled scene: one Taichi ndarray per declared array, freed together by ``close()``."""

import ctypes
import sys
from collections.abc import Iterable, Mapping

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.runtime import Runtime, free, impl, ndarray, ti

#: Taichi indexes with 32 bits: a larger array would wrap around silently.
MAX_ELEMENTS = 2**31 - 1


class Store:
    """Arrays by name, their adjoints as ``d_<name>``.

    ``sizes`` gives the number of values of every domain; ``slots``, ``frames`` and ``partitions`` are the leading sizes
    explained in :class:`~taichi_sim.core.array.Array`. Real numbers are those of the runtime, or ``double`` ones
    whatever the runtime; kernels bound to the store compute in the same. Raises ``ValueError`` for an array too large
    for Taichi.
    """

    def __init__(
        self,
        runtime: Runtime,
        arrays: Iterable[Array],
        sizes: Mapping[str, int],
        dim: int,
        slots: int,
        frames: int,
        partitions: int,
        gradients: bool = True,
        double: bool = False,
    ) -> None:
        self.runtime = runtime
        self.real = ti.f64 if double else runtime.real
        self.dim = dim
        self.slots = slots
        self.specs = {a.name: a for a in arrays}
        self.sizes = dict(sizes)
        self.arrays: dict[str, ti.Ndarray] = {}
        self._views: dict[str, np.ndarray] = {}
        for a in self.specs.values():
            size = a.domain_shape(sizes)
            lead = {"state": (slots,), "input": (frames,)}.get(a.role, ())
            self._allocate(a.name, a.taichi_type(self.real, dim), (*lead, *size), a)
            if not gradients or a.role == "scratch" or a.dtype == "int" or not a.differentiable:
                continue
            if a.role == "state":
                self._allocate(f"d_{a.name}", a.taichi_type(self.real, dim), size, a)
            else:
                shape = size if a.exclusive else (partitions, *lead, *size)
                self._allocate(f"d_{a.name}", a.taichi_type(ti.f64, dim), shape, a)

    def _allocate(self, name: str, dtype, shape: tuple[int, ...], spec: Array) -> None:
        elements = int(np.prod(shape, dtype=np.int64)) * int(np.prod(spec.element_shape(self.dim), dtype=np.int64))
        if elements > MAX_ELEMENTS:
            raise ValueError(
                f"array {name!r} would hold {elements:,} numbers, Taichi addresses {MAX_ELEMENTS:,}: "
                "use a larger domain.spacing, fewer particles, or a smaller memory budget"
            )
        array = ndarray(dtype, shape)
        self.arrays[name] = array
        if self.runtime.arch == "cpu":
            self._views[name] = _host_view(array)

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def view(self, name: str) -> np.ndarray:
        """The array as NumPy: the memory itself on a CPU (write into it freely), a copy on a device."""
        return self._views[name] if name in self._views else self.arrays[name].to_numpy()

    def write(self, name: str, values: np.ndarray) -> None:
        """Fill a whole array. Raises ``ValueError`` on a wrong shape (Taichi's own check is silent)."""
        array = self.arrays[name]
        expected = tuple(array.shape) + tuple(array.element_shape)
        if tuple(np.shape(values)) != expected:
            raise ValueError(f"array {name!r} has shape {expected}, got {np.shape(values)}")
        if name in self._views:
            np.copyto(self._views[name], values, casting="same_kind")
        else:
            array.from_numpy(np.ascontiguousarray(values, dtype=array.to_numpy().dtype))

    def write_first_slot(self, state: Mapping[str, np.ndarray]) -> None:
        """Fill slot 0 of state arrays by name."""
        for name, values in state.items():
            whole = self.view(name)
            whole[0] = values
            if name not in self._views:
                self.write(name, whole)

    def zero(self, names: Iterable[str]) -> None:
        """Set arrays to zero."""
        for name in names:
            if name in self._views:
                self._views[name].fill(0)
            else:
                self.arrays[name].fill(0)

    def states(self) -> list[str]:
        """Names of the arrays with role *state*."""
        return [a.name for a in self.specs.values() if a.role == "state"]

    def reduced_adjoint(self, name: str) -> np.ndarray:
        """Adjoint of a parameter or input summed over partitions, f64."""
        values = self.view(f"d_{name}")
        return np.array(values) if self.specs[name].exclusive else values.sum(axis=0)

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return sum(a._get_nelement() * a._get_element_size() for a in self.arrays.values())

    def close(self) -> None:
        """Free the memory. Safe to call twice, and after the runtime is gone."""
        self._views.clear()
        for array in self.arrays.values():
            free(array, self.runtime)
        self.arrays.clear()

    def __del__(self) -> None:
        exiting = sys is None or sys.is_finalizing()  # names of modules are gone by then
        if hasattr(self, "_views") and not exiting:  # no views where the sizes were refused
            self.close()


def _host_view(array: ti.Ndarray) -> np.ndarray:
    program = impl.get_runtime().prog
    count = array._get_nelement() * array._get_element_size()
    pointer = program.get_ndarray_data_ptr_as_int(array.arr)
    buffer = (ctypes.c_byte * count).from_address(pointer)
    kind = {ti.f32: np.float32, ti.f64: np.float64, ti.i32: np.int32}[array.dtype]
    return np.frombuffer(buffer, dtype=kind).reshape(tuple(array.shape) + tuple(array.element_shape))
