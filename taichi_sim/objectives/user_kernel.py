"""A user's own Taichi kernel as an objective, differentiated by Taichi.

.. code-block:: python

    @ti.kernel
    def spread(position: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=0)):
        for i in position:
            loss[None] += position[i].norm_sqr()

    scene.objectives["spread"] = {"kind": "function", "function": taichi_kernel(spread), "body": "torso"}
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim import runtime
from taichi_sim.core.errors import unknown
from taichi_sim.objectives.objective import INPUTS, Frame
from taichi_sim.runtime import ti

_VECTORS = ("position", "velocity", "rest")
_NUMBERS = ("time", "index", "frame_dt")


def taichi_kernel(
    kernel: Any, loss: Any = None, **constants: Any
) -> Callable[[Frame], tuple[float, dict[str, np.ndarray]]]:
    """``kernel``, a ``@ti.kernel`` that adds to a loss, as a function for the objective kind ``function``.

    The kernel's arguments are recognised by name. ``position``, ``velocity``, ``rest`` (``ti.types.ndarray(ndim=1)`` of
    vectors, or ``ndim=2`` of numbers), ``mass`` and ``activation`` (``ndim=1``): arrays, each with a derivative;
    ``time``, ``index``, ``frame_dt``: numbers; ``loss``: an ndarray with ``ndim=0`` (the default: ``loss[None]``) or 1
    (``loss[0]``); anything else must be given in ``constants``. A kernel that adds to a field of its own has no
    ``loss`` argument: pass the field here (shape (), ``needs_grad=True``). The loss is set to zero before each call.

    The derivative is Taichi's own, which is silently wrong for a local sum over a loop inside the parallel loop and for
    values carried from one turn of a loop to the next: add to the loss directly, and compare once with
    ``Simulation.check_gradients``.

    Raises ``ValueError`` if the kernel is not one, an argument is unknown, or the loss cannot be differentiated.
    """
    if not hasattr(kernel, "grad"):
        raise ValueError(f"taichi_kernel needs a @ti.kernel, got {kernel!r}")
    name = getattr(kernel, "__name__", repr(kernel))
    annotations = {n: p.annotation for n, p in inspect.signature(kernel).parameters.items() if n != "self"}
    known = (*INPUTS, *_NUMBERS, "loss", *constants)
    for argument in annotations:
        if argument not in known:
            raise ValueError(f"kernel {name!r}: {unknown('argument', argument, known)}; or pass it: {argument}=value")
    for constant in constants:
        if constant not in annotations:
            raise ValueError(f"kernel {name!r} has no argument {constant!r}")
    if ("loss" in annotations) == (loss is not None):
        raise ValueError(f"kernel {name!r} needs an argument 'loss', or the field it adds to as loss=; one of the two")
    if loss is not None and (not hasattr(loss, "shape") or tuple(loss.shape) != () or loss.grad is None):
        raise ValueError(f"kernel {name!r}: the loss field must be ti.field(float, shape=(), needs_grad=True)")

    call = _Call(kernel, annotations, loss, constants)

    def function(frame: Frame) -> tuple[float, dict[str, np.ndarray]]:
        return call.run(frame)

    function.__name__ = function.__qualname__ = name
    return function


@dataclass
class _Arrays:
    """Device arrays of one problem size, good for as long as the runtime that made them."""

    owner: runtime.Runtime
    sizes: tuple
    inputs: dict[str, Any]
    loss: Any


class _Call:
    def __init__(self, kernel: Any, annotations: dict[str, Any], loss: Any, constants: dict[str, Any]) -> None:
        self._kernel = kernel
        self._annotations = annotations
        self._field = loss
        self._constants = constants
        self._arrays: _Arrays | None = None

    def run(self, frame: Frame) -> tuple[float, dict[str, np.ndarray]]:
        with runtime.launch_lock:
            arrays = self._ready(frame)
            for name, array in arrays.inputs.items():
                shown = array.to_numpy()
                array.from_numpy(np.ascontiguousarray(getattr(frame, name), shown.dtype).reshape(shown.shape))
                array.grad.fill(0.0)
            arguments = [self._argument(name, arrays, frame) for name in self._annotations]
            arrays.loss.fill(0.0)
            self._kernel(*arguments)
            value = float(arrays.loss.to_numpy().reshape(()))
            arrays.loss.grad.fill(1.0)
            self._kernel.grad(*arguments)
            derivatives = {
                name: array.grad.to_numpy().astype(np.float64).reshape(getattr(frame, name).shape)
                for name, array in arrays.inputs.items()
            }
        return value, derivatives

    def _argument(self, name: str, arrays: _Arrays, frame: Frame) -> Any:
        if name in self._constants:
            return self._constants[name]
        if name in _NUMBERS:
            return getattr(frame, name)
        return arrays.loss if name == "loss" else arrays.inputs[name]

    def _ready(self, frame: Frame) -> _Arrays:
        owner = runtime.current()
        sizes = (frame.position.shape, frame.activation.shape)
        if self._arrays is None or self._arrays.owner is not owner or self._arrays.sizes != sizes:
            inputs = {
                name: _array_for(annotation, getattr(frame, name).shape, name in _VECTORS)
                for name, annotation in self._annotations.items()
                if name in INPUTS and name not in self._constants
            }
            loss = self._field
            if loss is None:
                annotation = self._annotations["loss"]
                shape = (1,) if getattr(annotation, "ndim", None) == 1 else ()
                loss = ti.ndarray(_number_type(annotation), shape, needs_grad=True)
            self._arrays = _Arrays(owner, sizes, inputs, loss)
        return self._arrays


def _number_type(annotation: Any) -> Any:
    dtype = getattr(annotation, "dtype", None)
    return runtime.current().real if dtype is None else getattr(dtype, "dtype", dtype)  # a vector's or its own


def _array_for(annotation: Any, shape: tuple[int, ...], vectors: bool) -> Any:
    """An ndarray the kernel accepts for a quantity of ``shape`` (particles, dim) or (size,)."""
    number = _number_type(annotation)
    if vectors and getattr(annotation, "ndim", None) != 2:
        return ti.ndarray(ti.types.vector(shape[1], number), shape[:1], needs_grad=True)
    return ti.ndarray(number, shape, needs_grad=True)
