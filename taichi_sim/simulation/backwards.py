"""Backward sweeps: from the adjoint of what was seen to the gradient by every quantity."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from taichi_sim.compile import observe
from taichi_sim.compile.binding import Values
from taichi_sim.compile.family import FELT, Family, State, add
from taichi_sim.compile.judge import Term
from taichi_sim.compile.quantity import add_vjp
from taichi_sim.simulation.forwards import ALONG, Forwards
from taichi_sim.timeline.tape import off_tape


class Backwards(Forwards):
    """An engine that differentiates what it ran."""

    def _pull(self, of: str, cotangent: np.ndarray) -> Values:
        """Gradients by every path, (envs, …), of what was just run with recording."""
        terms = self._terms_of(of)
        weighted = [(t, cotangent * (t.weight if of == "loss" else 1.0)) for t in (terms or [])]
        seeds: dict[str, np.ndarray] = {}
        if terms is None:
            self._add_seeds(seeds, of, cotangent)
        return self._sweep(weighted, seeds)

    def _add_seeds(self, seeds: State, of: str, cotangent: np.ndarray) -> None:
        """Add the adjoint of the final state from that of an observable, (envs, …)."""
        quantity, points = observe.select(self.model, of)
        if quantity.vjp is None:
            raise ValueError(f"{of!r} has no derivative")
        add_vjp(seeds, quantity, self._final_state(of), points, cotangent)

    def _sweep(self, terms: list[tuple[Term, np.ndarray]], seeds: dict[str, np.ndarray]) -> Values:
        world = self._alive()
        self._swept = True
        world.clear_adjoints()
        for _, family in self._families():
            family.forget()
        actuators = self.model.actuators
        actuators.activation_bar[:] = 0.0
        total: Values = {path: np.zeros_like(v) for path, v in self._values.items()}
        rest_bar, mass_bar = np.zeros(self._rest.shape), seeds.pop("mass", np.zeros(self._mass.shape))
        inertia_bar = seeds.pop("inertia", None)

        def shares(bars: State) -> Iterator[tuple[Any, Family, State]]:
            """Solvers, families, and what of ``bars`` is theirs and not zero."""
            for name, family in self._families():
                mine = {key: bar[:, family.points] for key, bar in bars.items() if key not in ALONG}
                if name == "rigid":
                    mine |= {key: bar for key, bar in bars.items() if key in ALONG}
                if any(bar.any() for bar in mine.values()):
                    yield world.solvers[name], family, mine

        def add_adjoints(k: int, bars: State) -> None:
            for solver, family, mine in shares({key: bar for key, bar in bars.items() if key not in FELT}):
                family.enter(solver, k, mine)

        def add_felt(k: int, bars: State, late: bool) -> None:
            for solver, family, mine in shares({key: bar for key, bar in bars.items() if key in FELT}):
                family.enter_felt(solver, k, mine, late)

        def enter(t: int, k: int) -> Callable[[], None] | None:
            f = t // self.substeps
            felt: State = {}
            if f == self.horizon:
                add_adjoints(k, seeds)
                felt = {key: bar for key, bar in seeds.items() if key in FELT and bar.any()}
            bars = None
            if terms:
                judge, looking = self.model.judge, [term for term, _ in terms]
                sensed = self._sensed(k, judge.active(looking, f))
                state = self._state(k, not judge.blind(looking, f))
                bars = judge.seed(terms, f, state, self._values, total, sensed)
            if bars is not None:
                add_adjoints(k, {"x": bars.x, "v": bars.v})
                add_adjoints(k, bars.sensed)
                felt |= {key: bar for key, bar in bars.sensed.items() if key in FELT and bar.any()}
                rest_bar[...] += bars.rest
                mass_bar[...] += bars.mass
                actuators.activation_bar[...] += bars.activation
            if not felt or k == 0:
                return None
            add_felt(k, felt, late=True)
            return lambda: add_felt(k, felt, late=False)

        with off_tape():
            self._timeline.backward(enter)
        add_adjoints(0, {"x": rest_bar})
        for name, coupling in world.couplings.items():
            add_adjoints(0, self.model.interfaces[name].start_bars(self.start, coupling))
        for name, family in self._families():
            p = family.points
            add(total, family.pullback(self._values, world.solvers[name]))
            inertia = None if inertia_bar is None else inertia_bar[:, p]
            add(total, family.pullback_mass(self._values, mass_bar[:, p], inertia))
        for name, coupling in world.couplings.items():
            add(total, self.model.interfaces[name].pullback(self._values, coupling))
        if self.model.meeting is not None and world.spheres is not None:
            add(total, self.model.meeting.pullback(self._values, world.spheres))
        add(total, actuators.pullback(self._values))
        return total
