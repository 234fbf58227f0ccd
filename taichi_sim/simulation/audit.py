"""The balance of momentum and energy of a rollout, per pair of solvers: ``taichi-sim run --audit``.

Every solver reports its momenta at both ends of a step and what acted on it, each where it is applied (``*.audit`` in
the rooms of the solvers). Here that is summed, and tested:

* what one family of matter got from another, and what the other got from it, cancel;
* what a family's momentum changed by is what is listed;
* kinetic, stored and gravitational energy never exceed those of the start and the work put in.

Nothing is tested that was itself found as what was missing; such rows say so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taichi_sim.core.reading import ROUNDING, Act, Along, Energy, Reading, State

#: Momentum that may be missing, of its scale; and energy that may be created, of the most in play.
MOMENTUM = {"f32": 1e-6, "f64": 1e-10}
ENERGY = 0.01


@dataclass
class Tally:
    """All that one partner did to one family: sums over the steps, and over the sizes of their parts."""

    impulse: np.ndarray
    turn: np.ndarray
    work: np.ndarray
    size: np.ndarray
    turn_size: np.ndarray
    derived: bool
    apart: str = ""

    @classmethod
    def begin(cls, one: Act) -> "Tally":
        """Of nothing yet."""
        vectors, numbers = one.impulse.shape, one.size.shape
        zeros = np.zeros(vectors), np.zeros(vectors), np.zeros(numbers), np.zeros(numbers), np.zeros(numbers)
        return cls(*zeros, one.derived)

    def add(self, one: Act) -> None:
        """One step more."""
        self.impulse += one.impulse
        self.turn += one.turn
        self.work += one.work
        self.size += one.size
        self.turn_size += one.turn_size
        self.apart = self.apart or one.apart


@dataclass
class Account:
    """One family of matter: momenta at the start and now, the largest sizes of both, sums of all sizes that were ever
    stored, who acted, and what is not known."""

    start: State
    now: State
    largest: np.ndarray
    stored: np.ndarray
    acts: dict[str, Tally] = field(default_factory=dict)
    precision: str = ""
    unknown: str = ""
    unknown_turn: str = ""
    along: Along | None = None

    @classmethod
    def begin(cls, state: State) -> "Account":
        """An account of nothing yet."""
        sizes = np.stack([state.size, state.turn_size])
        return cls(state, state, sizes, 0.0 * sizes)

    def add(self, reading: Reading) -> None:
        """One step more."""
        self.now = reading.after
        sizes = np.stack([self.now.size, self.now.turn_size])
        self.largest, self.stored = np.maximum(self.largest, sizes), self.stored + sizes
        self.precision, self.unknown, self.unknown_turn = (reading.precision, reading.unknown, reading.unknown_turn)
        if (more := reading.along) is not None:
            old = self.along or Along(0.0 * more.impulse, 0.0 * more.size, more.met)
            self.along = Along(old.impulse + more.impulse, old.size + more.size, np.maximum(old.met, more.met))
        for one in reading.acts:
            if one.by not in self.acts:
                self.acts[one.by] = Tally.begin(one)
            self.acts[one.by].add(one)


@dataclass(frozen=True)
class Check:
    """One test: ``sum`` is what should be nothing, ``scale`` what it is measured with; of the worst environment.

    ``allowed`` is the share of the scale that may be missing; ``None``: not judged, ``why`` says the reason.
    """

    what: str
    unit: str
    sum: np.ndarray
    scale: float
    allowed: float | None
    why: str = ""

    @property
    def share(self) -> float:
        """Of the scale."""
        size = float(np.linalg.norm(self.sum))
        return size / self.scale if self.scale > 0 else 0.0 if size == 0 else np.inf

    @property
    def ok(self) -> bool:
        """Whether it holds, or is not judged."""
        return self.allowed is None or self.share <= self.allowed


class Ledger:
    """Collects readings step by step, and judges them."""

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.accounts: dict[str, Account] = {}
        self.times: list[float] = []
        self.energies: dict[str, list[Energy]] = {}
        self.put_in: list[np.ndarray] = []
        self.blind: dict[str, None] = {}
        self._work: np.ndarray | None = None

    def add(self, time: float, readings: Mapping[str, Reading]) -> None:
        """One step of all families, which began at ``time``."""
        self.times.append(time)
        for name, reading in readings.items():
            if name not in self.accounts:
                self.accounts[name] = Account.begin(reading.before)
            self.accounts[name].add(reading)
            self.energies.setdefault(name, []).append(reading.energy)
            if reading.unknown_energy:
                self.blind[reading.unknown_energy] = None
        before = self._work if self._work is not None else np.zeros_like(reading.energy.kinetic)
        now, after = before.copy(), before.copy()
        for reading in readings.values():
            for one in reading.acts:
                if one.source:
                    now += one.work if one.at_once else reading.energy.part * one.work
                    after += one.work
        self.put_in.append(now)
        self._work = after

    # ---- judged ----

    def pairs(self) -> list[Check]:
        """What two families did to each other, linear and about the origin."""
        found, names = [], list(self.accounts)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                mine, theirs = self.accounts[a].acts.get(b), self.accounts[b].acts.get(a)
                one, other = self.accounts[a].along, self.accounts[b].along
                if one is not None and other is not None:
                    found.append(_worst_along(f"{a} + {b}, along joints", one, other, MOMENTUM[self.precision]))
                    continue
                if mine is None and theirs is None:
                    continue
                if mine is None or theirs is None:
                    blank = np.zeros(3)
                    why = f"what {b if theirs is None else a} felt is not known"
                    found.append(Check(f"{a} + {b}", "N s", blank, 0.0, None, why))
                    continue
                held = np.minimum(self.accounts[a].largest, self.accounts[b].largest)
                allowed = MOMENTUM[self.precision]
                linear = np.minimum(mine.size, theirs.size) + held[0]
                angular = np.minimum(mine.turn_size, theirs.turn_size) + held[1]
                found.append(_worst(f"{a} + {b}", "N s", mine.impulse + theirs.impulse, linear, allowed))
                why = mine.apart or theirs.apart
                turn = mine.turn + theirs.turn
                found.append(_worst(f"{a} + {b}, turning", "N m s", turn, angular, None if why else allowed, why))
        return found

    def solvers(self) -> list[Check]:
        """What a family's momentum changed by, less all that acted on it. Beside the tolerance, what storing its
        velocities loses is allowed: in single precision a slow loss shows only in double."""
        found = []
        for name, account in self.accounts.items():
            acts = account.acts.values()
            left = account.now.momentum - account.start.momentum - sum(a.impulse for a in acts)
            turn = account.now.turn - account.start.turn - sum(a.turn for a in acts)
            scales = account.largest + np.stack([sum(a.size for a in acts), sum(a.turn_size for a in acts)])
            rounding = ROUNDING[account.precision] * (account.stored / np.maximum(scales, 1e-300)).max(axis=1)
            derived = next((f"{by}: what is missing" for by, a in account.acts.items() if a.derived), "")
            for what, unit, rest, why, i in (
                (name, "N s", left, derived or account.unknown, 0),
                (f"{name}, turning", "N m s", turn, derived or account.unknown_turn, 1),
            ):
                allowed = None if why else MOMENTUM[account.precision] + float(rounding[i])
                found.append(_worst(what, unit, rest, scales[i], allowed, why))
        return found

    def energy(self) -> Check:
        """The most by which the energy ever exceeded that of the start and the work put in."""
        total, play = self._totals()
        created = total - total[0] - np.stack(self.put_in) + self.put_in[0]
        scale = np.maximum(play.max(axis=0), 0.0)
        most = np.maximum(created.max(axis=0), 0.0)
        share = np.where(scale > 0, most / np.where(scale > 0, scale, 1.0), np.where(most > 0, np.inf, 0.0))
        e = int(np.argmax(share))
        at = self.times[int(np.argmax(created[:, e]))]
        why = f"{next(iter(self.blind))} is not known" if self.blind else ""
        return Check(f"energy created, at {at:.4g} s", "J", most[e : e + 1], float(scale[e]),
                     None if why else ENERGY, why)  # fmt: skip

    def _totals(self) -> tuple[np.ndarray, np.ndarray]:
        """(steps, envs) all energy, and what of it is in play: heights counted from the lowest each family had."""
        total, play = 0.0, 0.0
        for series in self.energies.values():
            kinetic, height, stored = (
                np.stack([getattr(e, n) for e in series]) for n in ("kinetic", "height", "stored")
            )
            total = total + kinetic + height + stored
            play = play + kinetic + stored + height - height.min(axis=0)
        return np.asarray(total), np.asarray(play)

    @property
    def failures(self) -> list[str]:
        """A line for every test that fails."""
        found = [
            f"{check.what}: {np.linalg.norm(check.sum):.3g} {check.unit} are missing, {check.share:.2g} of "
            f"{check.scale:.3g} {check.unit}; allowed are {check.allowed:g}"
            for check in (*self.pairs(), *self.solvers()) if not check.ok
        ]  # fmt: skip
        energy = self.energy()
        if not energy.ok:
            found.append(
                f"{energy.what}: {float(energy.sum[0]):.3g} J, {100 * energy.share:.2g} % of the {energy.scale:.3g} J "
                f"in play; allowed is {100 * ENERGY:g} %"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, a list over environments where it says so."""
        total, _ = self._totals()
        check = lambda c: {  # noqa: E731
            "what": c.what, "unit": c.unit, "sum": c.sum.tolist(), "scale": c.scale, "share": c.share,
            "allowed": c.allowed, "ok": c.ok, **({"not_judged": c.why} if c.why else {}),
        }  # fmt: skip
        return {
            "ok": not self.failures,
            "failures": self.failures,
            "steps": len(self.times),
            "acts": [
                {"on": name, "by": by, "impulse": a.impulse.tolist(), "turn": a.turn.tolist(),
                 "work": [None if np.isnan(w) else float(w) for w in a.work], "derived": a.derived}
                for name, account in self.accounts.items() for by, a in account.acts.items()
            ],
            "momentum": [check(c) for c in (*self.pairs(), *self.solvers())],
            "energy": {
                "start": total[0].tolist(), "end": total[-1].tolist(), "put_in": self.put_in[-1].tolist(),
                "lost": (total[0] + self.put_in[-1] - total[-1]).tolist(), "created": check(self.energy()),
            },
        }  # fmt: skip


def _worst(what: str, unit: str, sums: np.ndarray, scale: np.ndarray, allowed: float | None, why: str = "") -> Check:
    """The check of the environment with the largest share."""
    checks = [Check(what, unit, sums[e], float(scale[e]), allowed, why) for e in range(len(scale))]
    return max(checks, key=lambda c: c.share)


def _worst_along(what: str, one: Along, other: Along, allowed: float) -> Check:
    """The check of the degree of freedom with the largest share; one that hardly anything acts along is measured with
    a millionth of the largest."""
    scale = np.minimum(one.size, other.size) + np.maximum(one.met, other.met)
    scale = np.maximum(scale, 1e-6 * scale.max())
    left = one.impulse + other.impulse
    checks = [Check(what, "N s or N m s", left[e, i : i + 1], float(scale[e, i]), allowed)
              for e, i in np.ndindex(*left.shape)]  # fmt: skip
    return max(checks, key=lambda c: c.share)


def rows(ledger: Ledger, dim: int) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]:
    """What acted on whom in the first environment, and the tests, as rows of two tables."""
    acts = [
        (name, by, _vector(a.impulse[0, :dim]), _vector(a.turn[0, 2:] if dim == 2 else a.turn[0]),
         "-" if np.isnan(a.work[0]) else f"{a.work[0]:.4g}", "what is missing" if a.derived else "")
        for name, account in ledger.accounts.items() for by, a in account.acts.items()
    ]  # fmt: skip
    checks = [
        (c.what, f"{np.linalg.norm(c.sum):.2e} {c.unit}", f"{c.scale:.3e}", f"{c.share:.1e}",
         f"not judged: {c.why}" if c.allowed is None else f"{'holds' if c.ok else 'FAILS'} (at most {c.allowed:.1e})")
        for c in (*ledger.pairs(), *ledger.solvers(), ledger.energy())
    ]  # fmt: skip
    return acts, checks


def _vector(values: np.ndarray) -> str:
    return " ".join(f"{v:.4g}" for v in values)
