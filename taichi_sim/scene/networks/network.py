"""What a kind of mass-spring network is, and the registry of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.core.registry import Parameter, Registry
from taichi_sim.scene.complete import complete
from taichi_sim.scene.shapes.shape import Context
from taichi_sim.solvers.particles.network import Network


@dataclass(frozen=True)
class NetworkKind:
    """A kind of network: its parameters, the dimensions it exists in, and how it is built.

    ``build(values, dim, context)`` gets every parameter (reals as float64 arrays) and returns a :class:`Network`; it
    may raise ``ValueError``. ``reads`` says that it opens files, which is left to the build.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    build: Callable[[dict[str, Any], int, Context], Network]
    dims: tuple[int, ...] = (2, 3)
    reads: bool = False


networks: Registry[NetworkKind] = Registry("network", "taichi_sim.scene.networks")


def make_network(kind: str, given: Mapping[str, Any], dim: int, path: str, folder: Path | None) -> Network:
    """The network that the entries ``given`` of a table at ``path`` describe; raises ``SceneError``."""
    found = networks.get(kind)
    if dim not in found.dims:
        others = ", ".join(k.name for k in networks if dim in k.dims)
        message = f"a {kind} exists in {found.dims[0]}-D only; in {dim}-D: {others}"
        raise SceneError([Problem(f"{path}.kind", message, kind, True)])
    try:
        made = found.build(complete(found.parameters, given, dim), dim, Context(path, folder))
        made.lumped_mass(1.0)  # a point without a spring would weigh nothing
    except ValueError as error:
        if isinstance(error, SceneError):
            raise
        raise SceneError([Problem(path, str(error))]) from None
    return made


def whole_numbers(name: str, value: Any) -> np.ndarray:
    """``value`` as integers. Raises ``ValueError`` naming ``name`` where they are not whole."""
    array = np.asarray(value, float)
    if not (array == np.rint(array)).all():
        raise ValueError(f"{name} must be whole numbers, got {array.tolist()}")
    return array.astype(np.int64)
