"""What a kind is given: its parameters, completed and checked, and directions, of which the length does not count."""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from taichi_sim.core.errors import short, unknown
from taichi_sim.core.registry import Parameter

Values = dict[str, Any]


def complete(what: str, parameters: tuple[Parameter, ...], params: Mapping[str, Any]) -> Values:
    """Every declared parameter: defaults filled in, reals as float64 arrays.

    A parameter of shape ``("any",)`` may also be one number; one with the default ``()`` may be left out. Raises
    ``ValueError`` naming ``what`` and the parameter if one is unknown, missing, of the wrong shape, not a number, or
    none of its choices.
    """
    names = [p.name for p in parameters]
    for name in params:
        if name not in names:
            raise ValueError(f"{what}: {unknown('parameter', name, names)}")
    filled: Values = {}
    for p in parameters:
        value = params.get(p.name, p.default)
        if value is None:
            raise ValueError(f"{what}: {p.name} must be given ({p.doc})")
        filled[p.name] = _array(what, p, value) if p.kind == "real" else value
        if p.kind == "choice" and value not in p.choices:
            raise ValueError(f"{what}: {unknown(p.name, str(value), p.choices)}")
    return filled


def _array(what: str, p: Parameter, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: {p.name} must be numbers, got {value!r}") from None
    fits = array.ndim == len(p.shape) and all(
        isinstance(n, str) or n == m for n, m in zip(p.shape, array.shape, strict=True)
    )
    left_out = array.size == 0 and isinstance(p.default, tuple) and len(p.default) == 0
    if not (fits or left_out or (p.shape == ("any",) and array.ndim == 0)):
        allowed = "a single number" if p.shape == () else f"an array of shape ({', '.join(map(str, p.shape))})"
        raise ValueError(f"{what}: {p.name} must be {allowed}, got shape {array.shape}")
    return array


def real_numbers(what: str, value: Any) -> np.ndarray:
    """``value`` as a new float64 array. Raises ``ValueError`` naming ``what`` for text, booleans and what is not real
    numbers, also among others in a list: they would be converted without a word."""
    try:
        array = np.asarray(value)
        kind = array.dtype.kind
        if not _has_flag(value) if kind in "iuf" else kind == "O" and all(map(_real, array.flat)):
            return np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{what} must be numbers, got {short(value)}")


def _has_flag(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_flag, value))
    return isinstance(value, bool | np.bool_)


def _real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def text(what: str, value: Any) -> str:
    """``value``, which must be text. Raises ``ValueError`` naming ``what``."""
    if not isinstance(value, str):
        raise ValueError(f"{what} must be text, got {short(value)}")
    return value


def texts(what: str, value: Any) -> list[str]:
    """``value``, which must be text or several, as a list. Raises ``ValueError`` naming ``what``."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        raise ValueError(f"{what} must be text or a list of texts, got {short(value)}")
    return [text(what, item) for item in value]


def length(vectors: np.ndarray) -> np.ndarray:
    """Lengths of vectors (…, dim), to the same bits for one and for many."""
    return np.sqrt((vectors[..., None, :] @ vectors[..., :, None])[..., 0, 0])


def unit(what: str, direction: np.ndarray) -> np.ndarray:
    """``direction`` (…, dim) scaled to length 1. Raises ``ValueError`` naming ``what`` if it has no direction."""
    size = length(direction)[..., None]
    if not (np.isfinite(size) & (size > 0.0)).all():
        raise ValueError(f"{what}: direction = {direction.tolist()} must be finite and not zero")
    return direction / size


def unit_vjp(direction: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Gradient of ``bar · unit(direction)`` by ``direction``: only turning counts, length does not."""
    size = length(direction)[..., None]
    along = direction / size
    return (bar - along * np.sum(along * bar, axis=-1, keepdims=True)) / size
