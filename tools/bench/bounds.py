"""What the product promises of its speed and memory, and whether all variants computed the same thing."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.measure import Measurement
from bench.variant import Result

HEIGHT_TOLERANCE = 2e-3  # of the distance the box has moved, or one cell where that is more
GRADIENT_TOLERANCE = 1e-2  # relative; single precision over up to 1 000 steps


class Table:
    """Measurements by scene and variant."""

    def __init__(self, measurements: Iterable[Measurement], import_s: float | None = None) -> None:
        self.rows = [m for m in measurements if not m.missing]
        self.import_s = import_s
        self._by_name = {(m.scene.name, m.variant): m for m in self.rows}

    def get(self, scene: str, variant: str = "ours") -> Measurement | None:
        return self._by_name.get((scene, variant))

    def slower(self, scene: str, variant: str, what: str) -> float | None:
        """How many times as long as ours ``variant`` takes; the median over rounds."""
        return _ratio(self.get(scene, variant), self.get(scene), what)


def _ratio(above: Measurement | None, below: Measurement | None, what: str) -> float | None:
    if above is None or below is None:
        return None
    pairs = list(zip(getattr(above, what), getattr(below, what), strict=False))
    work = [m.scene.n * m.scene.steps * m.scene.environments for m in (above, below)]
    return statistics.median((a / work[0]) / (b / work[1]) for a, b in pairs) if pairs else None


@dataclass(frozen=True)
class Bound:
    text: str
    required: float
    at_least: bool
    reach: Callable[[Table], float | None]
    unit: str = "×"


@dataclass(frozen=True)
class Outcome:
    text: str
    reached: float | None  # None: not measured
    required: float
    at_least: bool
    unit: str

    @property
    def ok(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached >= self.required if self.at_least else self.reached <= self.required


def _faster(text: str, required: float, scene: str, variant: str, what: str) -> Bound:
    return Bound(text, required, True, lambda table: table.slower(scene, variant, what))


def _within(text: str, required: float, scene: str) -> Bound:
    def reach(table: Table) -> float | None:
        return _ratio(table.get(scene), table.get(scene, "plain_reference"), "forward")

    return Bound(text, required, False, reach)


def _backward(scene: str) -> Bound:
    def reach(table: Table) -> float | None:
        m = table.get(scene)
        pairs = list(zip(m.forward_backward, m.forward, strict=False)) if m else []
        return statistics.median((both - forward) / forward for both, forward in pairs) if pairs else None

    return Bound(f"{scene}: backward against forward, everything stored", 2.5, False, reach)


def _environments(what: str, name: str) -> Bound:
    def reach(table: Table) -> float | None:
        return _ratio(table.get("tiny_2d_x8"), table.get("tiny_2d"), what)

    return Bound(f"tiny_2d: {name}, 8 environments, each against one alone", 1.0, False, reach)


def _cores(table: Table) -> float | None:
    m = table.get("box_3d")
    pairs = list(zip(m.forward_cpu, m.forward, strict=False)) if m else []
    return statistics.median(cpu / wall for cpu, wall in pairs) if pairs else None


def _value(scene: str, name: str) -> Callable[[Table], float | None]:
    return lambda table: getattr(table.get(scene), name, None)


def _against_printed(table: Table) -> float | None:
    m = table.get("longer_2d")
    return m.result.extra.get("grown_against_printed") if m and m.result else None


BOTH = "forward_backward"
BOUNDS: tuple[Bound, ...] = (
    _faster("box_3d: forward, faster than the DiffTaichi style", 2.0, "box_3d", "difftaichi_style", "forward"),
    _faster("box_3d: forward + backward, faster than the DiffTaichi style", 2.5, "box_3d", "difftaichi_style", BOTH),
    _faster("box_3d: forward + backward, faster than Warp", 5.0, "box_3d", "warp_style", BOTH),
    _within("box_3d: forward, time against plain C++", 2.5, "box_3d"),
    _within("muscle_3d: forward with muscle and friction, time against plain C++", 3.0, "muscle_3d"),
    _faster("box_2d: forward + backward, faster than the DiffTaichi style", 1.7, "box_2d", "difftaichi_style", BOTH),
    _faster("box_2d: forward + backward, faster than Warp", 2.0, "box_2d", "warp_style", BOTH),
    _faster("tiny_2d: forward, faster than plain launches", 3.0, "tiny_2d", "plain_launches", "forward"),
    _faster("tiny_2d: forward + backward, faster than plain launches", 3.0, "tiny_2d", "plain_launches", BOTH),
    _environments("forward", "forward"),
    _environments(BOTH, "forward + backward"),
    _backward("box_3d"),
    _backward("box_2d"),
    _backward("tiny_2d"),
    Bound("box_3d: forward, cores used (processor time against wall time)", 1.3, True, _cores),
    Bound("box_3d: cold start to the end of the first run", 25.0, False, _value("box_3d", "cold_s"), "s"),
    Bound("box_3d: warm start to the end of the first run", 5.0, False, _value("box_3d", "warm_s"), "s"),
    Bound("import taichi_sim", 1.0, False, lambda table: table.import_s, "s"),
    Bound(
        "long_2d: peak memory, 20 000 steps of 2 000 particles with gradient",
        700.0,
        False,
        _value("long_2d", "peak_mb"),
        "MB",
    ),
    Bound("longer_2d: memory taken by 100 000 steps with gradient, against the printed", 1.0, False, _against_printed),
)


def judge(table: Table) -> list[Outcome]:
    """Every bound, with what was reached."""
    return [Outcome(b.text, b.reach(table), b.required, b.at_least, b.unit) for b in BOUNDS]


@dataclass(frozen=True)
class Agreement:
    """How far a variant is from the first independent one of its scene."""

    scene: str
    variant: str
    reference: str
    height: float  # difference of final mean height, relative to the distance moved
    gradient: float | None  # relative difference of the gradient's sum and norm

    @property
    def ok(self) -> bool:
        return self.height <= HEIGHT_TOLERANCE and (self.gradient is None or self.gradient <= GRADIENT_TOLERANCE)


def _distance(a: list[float], b: list[float]) -> float | None:
    """Relative Euclidean distance; ``None`` where one of the two does not exist."""
    if not a or not b:
        return None
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 / sum(y * y for y in b) ** 0.5


def _gradient_distance(a: Result, b: Result) -> float | None:
    parts = [_distance(a.gradient_sum, b.gradient_sum), _distance(a.gradient_norm, b.gradient_norm)]
    return max((part for part in parts if part is not None), default=None)


def compare(table: Table) -> list[Agreement]:
    """Every variant against the first one of the same physics that is not ours, if possible with a gradient."""
    found = []
    for scene in dict.fromkeys(m.scene.name for m in table.rows):
        like = "tiny_2d" if scene == "tiny_2d_x8" else scene
        independent = [m for m in table.rows if m.scene.name == like and m.variant != "ours" and m.result]
        independent.sort(key=lambda m: not (m.result and m.result.gradient_sum))
        for m in (m for m in table.rows if m.scene.name == scene and m.result):
            if not independent or m is independent[0]:
                continue
            reference = independent[0]
            start = float(m.scene.lower[-1] + m.scene.upper[-1]) / 2
            assert m.result is not None and reference.result is not None
            moved = max(abs(reference.result.mean_height - start), m.scene.dx)
            height = abs(m.result.mean_height - reference.result.mean_height) / moved
            gradient = _gradient_distance(m.result, reference.result)
            found.append(Agreement(scene, m.variant, reference.variant, height, gradient))
    return found
