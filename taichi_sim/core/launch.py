"""Launching a kernel many times with the same arrays: 2-4 µs instead of 20-60 µs a call.

Taichi resolves the specialisation and fills the argument buffer anew at every call. Here both happen once; later
calls set the integers and launch. This uses what ``Kernel.launch_kernel`` itself does in taichi 1.7.4 (the version is
pinned), works on the CPU only, and falls back to plain calls elsewhere or where the start-up self-test fails.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taichi_sim.runtime import Runtime, free, impl, launch_lock, ndarray, ti

Launch = Callable[..., None]


@contextlib.contextmanager
def _compiling(light: bool, real: Any) -> Iterator[None]:
    """Compile without Taichi's advanced optimisation where ``light``, and with ``real`` numbers where given."""
    python, config = impl.get_runtime(), impl.get_runtime().prog.config()
    before = config.advanced_optimization, python.default_fp, config.default_fp
    config.advanced_optimization = before[0] and not light
    if real is not None:
        python.default_fp = config.default_fp = real
    try:
        yield
    finally:
        config.advanced_optimization, python.default_fp, config.default_fp = before


def _compile(kernel: Any, arguments: list[Any], light: bool, real: Any) -> tuple[Any, Any]:
    """Taichi's kernel for these arguments, and what it is compiled to."""
    primal, program = kernel._primal, impl.get_runtime().prog
    with launch_lock, _compiling(light, real):
        specialised = primal.compiled_kernels[primal.ensure_compiled(*arguments)]
        return specialised, program.compile_kernel(program.config(), program.get_device_caps(), specialised)


def _passed(kernel: Any, arguments: list[Any]) -> list[Any]:
    """Those of the arguments that are passed at a launch, in order of their slots; templates are compiled in."""
    notes = [declared.annotation for declared in kernel._primal.arguments]
    return [a for a, note in zip(arguments, notes, strict=True) if not isinstance(note, ti.template)]


class PreboundLaunch:
    """A kernel with its arrays bound; call it with the integer arguments, in order.

    Arrays are bound as raw host pointers, as NumPy arguments are (binding ``set_arg_ndarray`` is not reusable: the
    launcher overwrites the allocation handle). They are kept alive here, but die with the runtime: the owner checks
    the runtime's generation before launching.
    """

    __slots__ = ("_compiled", "_context", "_keep", "_launch", "_set", "_slots")

    def __init__(self, kernel: Any, arguments: list[Any], light: bool = False, real: Any = None) -> None:
        program = impl.get_runtime().prog
        specialised, self._compiled = _compile(kernel, arguments, light, real)
        self._context = specialised.make_launch_context()
        self._set = self._context.set_arg_int
        self._launch = program.launch_kernel
        self._keep = arguments
        self._slots: list[tuple[int]] = []
        for slot, argument in enumerate(_passed(kernel, arguments)):
            if isinstance(argument, ti.Ndarray):
                size = argument._get_nelement() * argument._get_element_size()
                pointer = program.get_ndarray_data_ptr_as_int(argument.arr)
                self._context.set_arg_external_array_with_shape((slot,), pointer, size, argument.shape, 0)
            else:
                self._set((slot,), argument)
                self._slots.append((slot,))

    def __call__(self, *integers: int) -> None:
        set_integer = self._set
        for slot, value in zip(self._slots, integers, strict=True):
            set_integer(slot, value)
        self._launch(self._compiled, self._context)


class PlainLaunch:
    """The same by ordinary calls."""

    __slots__ = ("_arguments", "_integers", "_kernel", "_light", "_real")

    def __init__(self, kernel: Any, arguments: list[Any], light: bool = False, real: Any = None) -> None:
        self._kernel, self._light, self._real = kernel, light, real
        self._arguments = list(arguments)
        declared = [a.annotation for a in kernel._primal.arguments]
        self._integers = [
            i
            for i, (value, note) in enumerate(zip(arguments, declared, strict=True))
            if not isinstance(note, ti.template) and not isinstance(value, ti.Ndarray)
        ]

    def __call__(self, *integers: int) -> None:
        with launch_lock, _compiling(self._light, self._real):
            for index, value in zip(self._integers, integers, strict=True):
                self._arguments[index] = value
            self._kernel(*self._arguments)


#: Taichi's own calls refuse more arguments; what they call does not.
MOST_ARGUMENTS = 64


class WideLaunch:
    """A plain launch with more arguments than Taichi's own calls take, on any backend: what they do, one by one."""

    __slots__ = ("_arguments", "_compiled", "_integers", "_specialised")

    def __init__(self, kernel: Any, arguments: list[Any], light: bool = False, real: Any = None) -> None:
        self._specialised, self._compiled = _compile(kernel, arguments, light, real)
        self._arguments = _passed(kernel, arguments)
        self._integers = [i for i, value in enumerate(self._arguments) if not isinstance(value, ti.Ndarray)]

    def __call__(self, *integers: int) -> None:
        with launch_lock:
            context = self._specialised.make_launch_context()
            for slot, value in zip(self._integers, integers, strict=True):
                self._arguments[slot] = value
            for slot, value in enumerate(self._arguments):
                if isinstance(value, ti.Ndarray):
                    context.set_arg_ndarray((slot,), value.arr)
                else:
                    context.set_arg_int((slot,), value)
            impl.get_runtime().prog.launch_kernel(self._compiled, context)


@ti.kernel
def _self_test_kernel(values: ti.types.ndarray(ndim=1), factor: ti.i32):
    for i in range(values.shape[0]):
        values[i] = values[i] * factor + 1


_works: tuple[object, bool] | None = None


def _prebinding_works(runtime: Runtime) -> bool:
    """Whether prebound launches give what plain calls give, tried once per runtime."""
    global _works
    if _works is None or _works[0] is not runtime.program:
        values = ndarray(ti.i32, 4)
        values.fill(1)
        try:
            launch = PreboundLaunch(_self_test_kernel, [values, 0])
            launch(3)
            launch(5)
            works = bool(np.all(values.to_numpy() == (1 * 3 + 1) * 5 + 1))
        except Exception:  # another Taichi build: private calls may be gone, whatever they raise
            works = False
        free(values, runtime)
        _works = (runtime.program, works)
    return _works[1]


def bind_launch(
    runtime: Runtime, kernel: Any, arguments: list[Any], plain: bool = False, light: bool = False, real: Any = None
) -> Launch:
    """Bind ``kernel`` to ``arguments`` (arrays, templates, and 0 for every integer given later).

    ``light``: compiled without Taichi's advanced optimisation, whose time grows faster than the kernel; a large one
    with short loops compiles in a fifth of the time and runs about as fast. ``real``: the type of numbers that are not
    in arrays, if not the runtime's.

    Under the lock: two Python threads that compile at once crash the process, or find themselves inside each other's
    kernel.
    """
    with launch_lock:
        if plain or runtime.arch != "cpu" or not _prebinding_works(runtime):
            wide = len(_passed(kernel, arguments)) > MOST_ARGUMENTS
            return (WideLaunch if wide else PlainLaunch)(kernel, arguments, light, real)
        return PreboundLaunch(kernel, arguments, light, real)
