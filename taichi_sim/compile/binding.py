"""What a binding is."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

#: Values of all paths, each (envs, *shape), float64.
Values = dict[str, np.ndarray]


class Binding(ABC):
    """A family of quantities between the scene's paths and the solver's arrays."""

    @abstractmethod
    def apply(self, values: Values, solver: Any) -> None:
        """Put the values into the solver's arrays."""

    @abstractmethod
    def pullback(self, values: Values, solver: Any) -> Values:
        """Gradient by path, (envs, *shape), from the adjoints the backward sweep left in the solver."""


def per_env(values: Values, path: str, envs: int) -> list[int]:
    """For each environment the first one with the same value of ``path`` (work done once serves all)."""
    stack = values[path].reshape(envs, -1)
    first: dict[bytes, int] = {}
    return [first.setdefault(stack[e].tobytes(), e) for e in range(envs)]
