"""The arrays of chambers and tendons, declared once; and their sizes and topology."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array

#: Kinds of units.
CHAMBER, TENDON = 0, 1


@dataclass(frozen=True)
class ActingPlan:
    """Topology of all chambers and tendons that act on the particles of one solver, the same in all environments.

    ``bound`` (b,) are the particles that anchors go with, in the order of the scene. ``links`` (l, 2) are pairs
    (anchor, index into ``bound``), by anchor. ``faces`` (f, dim) are the segments or triangles of chambers, outward, as
    anchors. ``units`` (u, 3) are kind, first and one past the last: of the faces of a chamber, of the anchors of a
    tendon.
    """

    dim: int
    envs: int
    particles: int
    anchors: int
    bound: np.ndarray
    links: np.ndarray
    faces: np.ndarray
    units: np.ndarray

    @property
    def heads(self) -> np.ndarray:
        """(anchors + 1,) first link of every anchor."""
        counts = np.bincount(self.links[:, 0], minlength=self.anchors) if len(self.links) else np.zeros(self.anchors)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


_V = ("dim",)


def _scratch(name: str, element: tuple, domain: str, unit: str, doc: str, dtype: str = "real") -> Array:
    return Array(name, element, domain, "scratch", unit, doc, dtype=dtype)


def _param(name: str, element: tuple, domain: str, unit: str, doc: str) -> Array:
    return Array(name, element, domain, "param", unit, doc, exclusive=True)


ARRAYS = (
    _param("weight", (), "link", "1", "share of a particle in an anchor"),
    _param("offset", _V, "anchor", "m", "what is fixed of an anchor's place"),
    _param("mass", (), "bound", "kg", "mass of a particle"),
    _param("dt", (), "env", "s", "substep"),
    _param("trait", (3,), "unit", "mixed", "ambient pressure [Pa], volume [m^dim], nothing; or stiffness [N/m], "
           "rest length [m], friction [1]"),
    Array("drive", (2,), "unit", "input", "mixed", "gauge pressure [Pa], air [J]; or tension [N], shortening [m]"),
    _scratch("link", (), "links", "1", "particle of a link, counted among those that are bound", "int"),
    _scratch("head", (), "heads", "1", "first link of an anchor", "int"),
    _scratch("face", (3,), "faces", "1", "corners of a face", "int"),
    _scratch("unit", (3,), "units", "1", "kind, first, one past the last", "int"),
    _scratch("counts", (), "counts", "1", "anchors, links, bound, units", "int"),
    _scratch("place", (), "bound", "1", "where a bound particle is in the host's arrays", "int"),
    _scratch("kept", _V, "bound", "m/s", "velocity without the forces"),
    _scratch("y", _V, "anchor", "m", "place of an anchor"),
    _scratch("g", _V, "anchor", "N", "force on an anchor"),
    _scratch("y_bar", _V, "anchor", "-", "adjoint of y"),
    _scratch("g_bar", _V, "anchor", "-", "adjoint of g"),
    _scratch("force", _V, "bound", "N", "force on a particle"),
    _scratch("force_bar", _V, "bound", "-", "adjoint of force"),
    _scratch("along", _V, "anchor", "1", "direction from an anchor of a tendon to its next"),
    _scratch("along_bar", _V, "anchor", "-", "adjoint of along"),
    _scratch("wrapped", (), "anchor", "rad", "how far a tendon has turned before it leaves an anchor"),
)  # fmt: skip


def domain_sizes(p: ActingPlan) -> dict[str, int]:
    """Sizes of all domains."""
    return {
        "link": p.envs * len(p.links),
        "anchor": p.envs * p.anchors,
        "bound": p.envs * len(p.bound),
        "env": p.envs,
        "unit": p.envs * len(p.units),
        "links": len(p.links),
        "heads": p.anchors + 1,
        "faces": len(p.faces),
        "units": len(p.units),
        "counts": 4,
    }
