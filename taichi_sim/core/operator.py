"""Operators: a kernel and its hand-written adjoint, bound to arrays by the names of their parameters."""

from collections.abc import Mapping
from typing import Any, Protocol

from taichi_sim.core.errors import unknown
from taichi_sim.core.launch import Launch, bind_launch
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime, ti


class Arrays(Protocol):
    """What kernels are bound to: a :class:`~taichi_sim.core.store.Store`, or several seen as one."""

    runtime: Runtime
    real: Any
    arrays: dict[str, ti.Ndarray]

    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: str) -> ti.Ndarray: ...


class Operator:
    """A forward kernel; ``@op.adjoint`` stands directly below it.

    Parameters named like an array receive it, ``d_<name>`` its adjoint; ``ti.template()`` parameters come from
    ``fixed``; what is left are integers, passed at every launch in the order declared.
    """

    def __init__(self, kernel: Any, light: bool = False) -> None:
        self.kernel, self.light = kernel, light
        self.adjoint_kernel: Any = None
        self.__doc__ = kernel.__doc__
        self.name = kernel.__name__

    def adjoint(self, kernel: Any) -> Any:
        """Register the hand-written adjoint."""
        self.adjoint_kernel = kernel
        return kernel

    def bind(self, store: Store, plain: bool = False, **fixed: Any) -> Launch:
        """The forward launch on the arrays of ``store``."""
        return bind_kernel(self.kernel, store, fixed, plain, self.light)

    def bind_adjoint(self, store: Store, plain: bool = False, **fixed: Any) -> Launch:
        """The adjoint launch. Raises ``ValueError`` if none was written."""
        if self.adjoint_kernel is None:
            raise ValueError(f"operator {self.name!r} has no adjoint")
        return bind_kernel(self.adjoint_kernel, store, fixed, plain, self.light)


def operator(kernel: Any) -> Operator:
    """Turn a module-level ``@ti.kernel`` into an :class:`Operator`."""
    return Operator(kernel)


def light_operator(kernel: Any) -> Operator:
    """The same for a large kernel, compiled in a fraction of the time (see ``launch.bind_launch``)."""
    return Operator(kernel, light=True)


def bind_kernel(
    kernel: Any, store: Arrays, fixed: Mapping[str, Any], plain: bool = False, light: bool = False
) -> Launch:
    """Bind any kernel by parameter name, with the checks Taichi leaves out.

    Raises ``ValueError`` naming the kernel and the parameter: no such array, another number of dimensions,
    a template that was not given, or a number that is not an integer.
    """
    arguments: list[Any] = []
    for declared in kernel._primal.arguments:
        name, note = declared.name, declared.annotation
        if name in fixed:
            arguments.append(fixed[name])
        elif isinstance(note, ti.types.ndarray):
            if name not in store:
                raise ValueError(f"kernel {kernel.__name__!r}: {unknown('array', name, store.arrays)}")
            array = store[name]
            if note.ndim is not None and note.ndim != len(array.shape):
                raise ValueError(
                    f"kernel {kernel.__name__!r}: array {name!r} has {len(array.shape)} dimensions, "
                    f"the parameter is declared with {note.ndim}"
                )
            arguments.append(array)
        elif isinstance(note, ti.template):
            raise ValueError(f"kernel {kernel.__name__!r}: template parameter {name!r} was not given")
        elif note not in (int, ti.i32, ti.i64):
            raise ValueError(
                f"kernel {kernel.__name__!r}: parameter {name!r} must be an array or an integer (other numbers live in "
                "arrays, where they have a gradient)"
            )
        else:
            arguments.append(0)
    return bind_launch(store.runtime, kernel, arguments, plain, light, store.real)
