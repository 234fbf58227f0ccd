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
    if loss is not None and (not hasattr(loss, "shape") or tuple(loss.shape) != () or not _has_gradient(loss)):
        raise ValueError(f"kernel {name!r}: the loss field must be ti.field(float, shape=(), needs_grad=True)")

    def function(frame: Frame) -> tuple[float, dict[str, np.ndarray]]:
        with runtime.launch_lock:
            return _run(kernel, annotations, loss, constants, frame)

    function.__name__ = function.__qualname__ = name
    function.__wrapped__ = kernel  # type: ignore[attr-defined]  # inspect finds the kernel's source
    return function


def _has_gradient(loss: Any) -> bool:
    gradient = getattr(loss, "grad", None)  # of a field without needs_grad: a field without a place
    return gradient is not None and (not hasattr(gradient, "parent") or gradient.parent() is not None)


def _run(
    kernel: Any, annotations: dict[str, Any], field: Any, constants: dict[str, Any], frame: Frame
) -> tuple[float, dict[str, np.ndarray]]:
    """Value and derivatives at one frame.

    The arrays live for this call only: one that outlives its runtime would free memory of the next.
    """
    inputs = {
        name: _array_for(annotation, getattr(frame, name), name in _VECTORS)
        for name, annotation in annotations.items()
        if name in INPUTS and name not in constants
    }
    loss = field
    if loss is None:
        shape = (1,) if getattr(annotations["loss"], "ndim", None) == 1 else ()
        loss = ti.ndarray(_number_type(annotations["loss"]), shape, needs_grad=True)
    known = {name: getattr(frame, name) for name in _NUMBERS} | {"loss": loss} | inputs | constants
    arguments = [known[name] for name in annotations]
    loss.fill(0.0)
    kernel(*arguments)
    value = float(loss.to_numpy().reshape(()))
    loss.grad.fill(1.0)
    kernel.grad(*arguments)
    return value, {name: array.grad.to_numpy().astype(np.float64) for name, array in inputs.items()}


def _number_type(annotation: Any) -> Any:
    dtype = getattr(annotation, "dtype", None)
    return runtime.current().real if dtype is None else getattr(dtype, "dtype", dtype)  # a vector's or its own


def _array_for(annotation: Any, values: np.ndarray, vectors: bool) -> Any:
    """An ndarray the kernel accepts holding ``values``, (particles, dim) or (size,), with a gradient of zero."""
    number = _number_type(annotation)
    if vectors and getattr(annotation, "ndim", None) != 2:
        array = ti.ndarray(ti.types.vector(values.shape[1], number), values.shape[:1], needs_grad=True)
    else:
        array = ti.ndarray(number, values.shape, needs_grad=True)
    array.from_numpy(np.ascontiguousarray(values, np.float32 if number == ti.f32 else np.float64))
    array.grad.fill(0.0)
    return array
