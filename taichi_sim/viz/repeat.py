"""Drawing in a domain with periodic sides: what lies beyond one is drawn where it comes in on the other.

``lower`` (dim,) m is the domain's lower corner, ``period`` (dim,) m its extent along periodic axes, infinite along the
others.
"""

import numpy as np

from taichi_sim.viz.picture import Mesh


def periods_away(points: np.ndarray, lower: np.ndarray, period: np.ndarray) -> np.ndarray:
    """(..., dim) whole periods from the domain to points (..., dim), m."""
    finite = np.isfinite(period)
    return np.where(finite, np.floor((points - lower) / np.where(finite, period, 1.0)), 0.0)


def shifted(points: np.ndarray, away: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Points (..., dim), m, taken back by ``away`` whole periods, in their own precision."""
    return (points - away * np.where(np.isfinite(period), period, 0.0)).astype(points.dtype)


def wrapped(points: np.ndarray, lower: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Points (..., dim), m, in the domain."""
    if not np.isfinite(period).any():
        return points
    return shifted(points, periods_away(points, lower, period), period)


def cut_mesh(mesh: Mesh, lower: np.ndarray, period: np.ndarray) -> list[Mesh]:
    """A surface in pieces, each triangle whole and with its centre in the domain."""
    if not np.isfinite(period).any():
        return [mesh]
    away = periods_away(mesh.vertices[mesh.faces].mean(axis=1), lower, period)
    places, which = np.unique(away, axis=0, return_inverse=True)
    return [
        mesh._replace(vertices=shifted(mesh.vertices, place, period), faces=mesh.faces[which.reshape(-1) == k])
        for k, place in enumerate(places)
    ]


def cut_line(points: np.ndarray, lower: np.ndarray, period: np.ndarray) -> list[np.ndarray]:
    """A polyline (k, dim) in pieces, one for each time it went through the domain."""
    if not np.isfinite(period).any():
        return [points]
    away = periods_away(points, lower, period)
    crossed = np.flatnonzero((away[1:] != away[:-1]).any(axis=1)) + 1
    return np.split(shifted(points, away, period), crossed)
