"""Observables: what can be read from a state by path, with the derivative where there is one.

Paths: ``bodies.B.<quantity>``, ``bodies.B.regions.R.<quantity>``, or ``<quantity>`` of everything together. Sums are
written without matrix products, which may add up in another order on another number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.model import Model
from taichi_sim.core.errors import unknown

State = dict[str, np.ndarray]


@dataclass(frozen=True)
class Quantity:
    """``value(state, p)`` of particles ``p`` in one environment; ``vjp`` gives adjoints of x, v, F and mass of those.

    ``state`` holds x, v, F (particles, …), mass (particles,) and energy (particles,), J.
    """

    doc: str
    unit: str
    value: Callable[[State, np.ndarray], np.ndarray]
    vjp: Callable[[State, np.ndarray, np.ndarray], State] | None = None
    scalar: bool = False


def _mean(key: str) -> tuple[Callable, Callable]:
    """Mean of ``key`` weighted by mass, and its derivative."""

    def value(s: State, p: np.ndarray) -> np.ndarray:
        m = s["mass"][p]
        return np.sum((m / m.sum())[:, None] * s[key][p], axis=0)

    def vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
        total = s["mass"][p].sum()
        apart = np.einsum("nd,d->n", s[key][p] - value(s, p), bar)
        return {key: (s["mass"][p] / total)[:, None] * bar, "mass": apart / total}

    return value, vjp


QUANTITIES: dict[str, Quantity] = {
    "position": Quantity("positions", "m", lambda s, p: s["x"][p], lambda s, p, bar: {"x": bar}),
    "velocity": Quantity("velocities", "m/s", lambda s, p: s["v"][p], lambda s, p, bar: {"v": bar}),
    "deformation": Quantity("deformation gradients", "1", lambda s, p: s["F"][p], lambda s, p, bar: {"F": bar}),
    "center_of_mass": Quantity("centre of mass", "m", *_mean("x")),
    "mean_velocity": Quantity("velocity of the centre of mass", "m/s", *_mean("v")),
    "momentum": Quantity(
        "linear momentum",
        "kg m/s",
        lambda s, p: np.sum(s["mass"][p][:, None] * s["v"][p], axis=0),
        lambda s, p, bar: {"v": s["mass"][p][:, None] * bar, "mass": np.einsum("nd,d->n", s["v"][p], bar)},
    ),
    "kinetic_energy": Quantity(
        "kinetic energy of the particles",
        "J",
        lambda s, p: np.asarray(0.5 * np.sum(s["mass"][p] * np.sum(s["v"][p] ** 2, axis=1))),
        lambda s, p, bar: {
            "v": bar * s["mass"][p][:, None] * s["v"][p],
            "mass": 0.5 * bar * np.sum(s["v"][p] ** 2, axis=1),
        },
        scalar=True,
    ),
    "elastic_energy": Quantity("stored energy", "J", lambda s, p: np.asarray(np.sum(s["energy"][p])), scalar=True),
    "mass": Quantity(
        "mass",
        "kg",
        lambda s, p: np.asarray(np.sum(s["mass"][p])),
        lambda s, p, bar: {"mass": np.full(len(p), bar)},
        scalar=True,
    ),
}


def select(model: Model, path: str) -> tuple[Quantity, np.ndarray]:
    """The quantity and the particles (body order) a path names. Raises ``ValueError`` with the nearest name."""
    parts = path.split(".")
    everything = np.arange(model.particles)
    if len(parts) == 1:
        if path not in QUANTITIES:
            whole = [n for n in names(model) if not n.startswith(("bodies.", "actuators."))]
            raise ValueError(f"{path!r} cannot be observed; {unknown('observable', path, whole)}")
        return QUANTITIES[path], everything
    if parts[0] != "bodies" or len(parts) not in (3, 5) or (len(parts) == 5 and parts[2] != "regions"):
        raise ValueError(f"{path!r} cannot be observed; {unknown('observable', path, names(model))}")
    by_name = {b.name: b for b in model.bodies}
    if parts[1] not in by_name:
        raise ValueError(f"{path!r}: {unknown('body', parts[1], by_name)}")
    body, where = by_name[parts[1]], model.slices[parts[1]]
    if len(parts) == 3:
        return _quantity(path, parts[2]), everything[where]
    if parts[3] not in body.regions:
        raise ValueError(f"{path!r}: {unknown('region', parts[3], body.regions)}")
    return _quantity(path, parts[4]), where.start + np.asarray(body.regions[parts[3]])


def _quantity(path: str, name: str) -> Quantity:
    if name not in QUANTITIES:
        raise ValueError(f"{path!r} cannot be observed; {unknown('observable', name, QUANTITIES)}")
    return QUANTITIES[name]


def scalars(model: Model, path: str) -> list[str]:
    """What has a gradient near ``path``: the loss, the objectives, and numbers of the same body or region."""
    terms = ["loss", *(f"objectives.{term.name}" for term in model.judge.terms)] if model.judge.terms else []
    where = path.rpartition(".")[0]
    near = where + "." if where.startswith("bodies.") else ""
    return terms + [near + name for name, q in QUANTITIES.items() if q.scalar and q.vjp]


def names(model: Model) -> list[str]:
    """All observable paths of a model: of its state, and those of the loss and the actuators."""
    found = list(QUANTITIES)
    if model.judge.terms:
        found += ["loss", *(f"objectives.{term.name}" for term in model.judge.terms)]
    found += [f"actuators.{a.name}.activation" for a in model.actuators.actuators]
    for body in model.bodies:
        found += [f"bodies.{body.name}.{q}" for q in QUANTITIES]
        found += [f"bodies.{body.name}.regions.{r}.{q}" for r in body.regions for q in QUANTITIES]
    return found
