"""B10: tossed cubes. Friction and restitution are identified by gradient on some recorded tosses, tried on others.

Data: Pfrommer, Halm and Posa, "ContactNets" (CoRL 2020), github.com/DAIRLab/contact-nets: a cube of .1048 m and .37 kg
at 148 frames/s; ``state`` rows of position (m), quaternion w x y z, velocity (m/s, backward difference) and angular
velocity (rad/s, body axes); ``offsets`` of the tosses. Lengths there are 2 % short: half width .0513 m and g 9.61 m/s²
fit the recording. They are looked for in the folder the environment variable ``TAICHI_SIM_DATA`` names, else in
``data`` or ``shared/data`` in or beside the checkout. All tosses run at once, each in an environment of its own.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.optimization.loop import Outcome, minimise
from taichi_sim.optimization.problem import Problem
from validate.case import Case, Plot, Report

WIDTH, HALF, MASS, GRAVITY, FRAME = 0.1048, 0.0513, 0.37, 9.61, 1.0 / 148.0
INERTIA = 0.00081 * (HALF / 0.0524) ** 2
#: Four markers within the cube, so near its centre that distance and angle count about alike in the error of theirs.
POINTS = 0.5 * HALF * np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
FILE = Path("cube_toss") / "tosses_dev_000_284.npz"
#: Frames after which the horizon grows, and evaluations in all.
CURRICULUM, EVALUATIONS = [25, 40, 70], 48
#: Name, steps a frame, what is guessed beside friction, frictions begun from, and what the errors may be at most.
LAWS = (
    ("compliant, 8 steps a frame", 8, {"damping": 2.0}, (0.05, 0.5, 1.0), (0.13, 15.0)),
    ("rebounds, 1 step a frame", 1, {"restitution": 0.4}, (0.5,), (0.13, 16.5)),
)
#: Step of Adam: a factor of 1.12 for what is on a logarithmic scale.
RATE = 0.05
#: PyBullet's errors on the same tosses with the best of 20 pairs of friction and restitution: half width .0513 and 8
#: substeps with the authors' geometry; widths and degrees.
PYBULLET = ((0.137, 16.3, "same geometry"), (0.129, 16.5, "the authors' geometry"))


def recorded() -> "list[np.ndarray] | None":
    """Rows (frames, 13) of dev tosses 0, 7, …, 273; ``None`` where the data are not to be found."""
    root = Path(__file__).resolve().parents[3]
    named = os.environ.get("TAICHI_SIM_DATA")
    places = [Path(named)] if named else [at / name for at in (root, root.parent) for name in ("data", "shared/data")]
    for place in places:
        if (place / FILE).is_file():
            with np.load(place / FILE) as data:
                state, offsets = data["state"].astype(float), data["offsets"]
            return [state[offsets[i] : offsets[i + 1]] for i in range(0, 280, 7)]
    return None


def turned(rows: np.ndarray) -> Rotation:
    """Attitudes of recorded rows."""
    return Rotation.from_quat(rows[:, [4, 5, 6, 3]])


def toss(frames: int, substeps: int, restitution: float) -> ts.Scene:
    """One cube over a floor, judged by the motion of its markers; where it begins and what it shall do is set later."""
    above = [0.0, 0.0, 0.2]
    markers = {f"point_{k}": ts.Marker(point=list(point)) for k, point in enumerate(POINTS)}
    times = FRAME * np.arange(1, frames + 1)
    data = {"markers": POINTS + above, "times": times, "data": np.zeros((frames, *POINTS.shape)), "count": 1}
    return ts.Scene(
        name="tosses", dim=3, duration=frames * FRAME, frame_dt=FRAME, gravity=[0.0, 0.0, -GRAVITY],
        domain=ts.Domain(
            lower=[-2.0, -2.0, 0.0], upper=[2.0, 2.0, 2.0], walls={"default": ts.Wall(kind="separate", friction=0.5)}
        ),
        solver=ts.SolverSettings(dt=FRAME / substeps),
        rigid={
            "cube": ts.Rigid(
                shape={"kind": "box", "lower": [-HALF] * 3, "upper": [HALF] * 3}, mass=MASS, position=above,
                inertia=[INERTIA] * 3 + [0.0] * 3, friction=0.5, restitution=restitution, markers=markers,
            )
        },
        objectives={"recorded": ts.Objective(kind="trajectory", body="cube", region="*", parameters=data)},
    )  # fmt: skip


class Tosses:
    """Recorded tosses side by side: what an optimisation asks of a simulation, the loss being the mean of theirs."""

    #: What is identified, with the paths that hold it.
    PATHS: Mapping[str, Sequence[str]] = {
        "friction": ("rigid.cube.friction", "domain.walls.z_lower.friction"),
        "restitution": ("rigid.cube.restitution",),
        "damping": ("rigid.cube.contact_damping",),
    }

    def __init__(self, rows: Sequence[np.ndarray], substeps: int, guess: Mapping[str, float] | None = None) -> None:
        self.rows, self.frames = rows, max(map(len, rows)) - 1
        self.sim = ts.Simulation(
            toss(self.frames, substeps, (guess or {}).get("restitution", 0.0)),
            precision="f64",
            envs=len(rows),
            memory="2GB",
        )
        first = np.array([each[0] for each in rows])
        start = turned(first)
        self.sim.set("rigid.cube.position", first[:, :3])
        self.sim.set("rigid.cube.rotation", start.as_rotvec())
        # a backward difference is the velocity half a frame ago
        self.sim.set("rigid.cube.velocity", first[:, 7:10] - [0.0, 0.0, 0.5 * FRAME * GRAVITY])
        self.sim.set("rigid.cube.angular_velocity", start.apply(first[:, 10:13]))
        self.sim.set("objectives.recorded.markers", self.sim.start["x"][:, 1:])
        data = np.full((len(rows), self.frames, *POINTS.shape), np.nan)
        for e, each in enumerate(rows):
            arms = np.einsum("tij,mj->tmi", turned(each[1:]).as_matrix(), POINTS)
            data[e, : len(each) - 1] = each[1:, None, :3] + arms
        self.sim.set("objectives.recorded.data", data)
        bounds = {
            "friction": (0.02, 2.0, "log"), "restitution": (0.0, 0.95, "linear"), "damping": (0.1, 50.0, "log")
        }  # fmt: skip
        self.design = [
            _Unknown(name, np.asarray(value), bounds[name][0], bounds[name][1], bounds[name][2])
            for name, value in (guess or {}).items()
        ]

    def __enter__(self) -> "Tosses":
        return self

    def __exit__(self, *error: object) -> None:
        self.sim.close()

    @property
    def horizon(self) -> int:
        """Frames of a rollout."""
        return self.sim.horizon

    @horizon.setter
    def horizon(self, frames: int) -> None:
        self.sim.horizon = frames

    def set(self, path: str, value: Any) -> None:
        """Give all tosses the same friction or restitution."""
        for one in self.PATHS[path]:
            self.sim.set(one, value)

    def value_and_grad(self, of: str = "loss", wrt: Sequence[str] = ()) -> tuple[float, dict[str, np.ndarray]]:
        """Mean over the tosses, and its derivatives."""
        values, found = self.sim.value_and_grad(of, [one for path in wrt for one in self.PATHS[path]])
        by = {path: np.asarray(sum(found[one].mean() for one in self.PATHS[path])) for path in wrt}
        return float(np.mean(values)), by

    def score(self, values: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Mean over frames of every toss's distance (widths) and angle (degrees) from what was recorded."""
        for path, value in values.items():
            self.set(path, value)
        self.horizon = self.frames
        self.sim.run(record=["rigid.cube.position", "rigid.cube.rotation"])
        assert self.sim.rollout is not None
        x, R = (self.sim.rollout.observed[f"rigid.cube.{name}"] for name in ("position", "rotation"))
        far, angle = [], []
        for e, each in enumerate(self.rows):
            far.append(np.linalg.norm(x[e, : len(each)] - each[:, :3], axis=1).mean() / WIDTH)
            apart = turned(each).inv() * Rotation.from_matrix(R[e, : len(each)])
            angle.append(np.degrees(apart.magnitude()).mean())
        return np.array(far), np.array(angle)


class _Unknown:
    """A design variable."""

    spread, step = 0.0, None

    def __init__(self, path: str, value: np.ndarray, lower: float, upper: float, scale: str) -> None:
        self.path, self.value, self.lower, self.upper, self.scale = path, value, lower, upper, scale


def identify(
    rows: Sequence[np.ndarray], guess: Mapping[str, float], substeps: int, curriculum: Sequence[int], evaluations: int
) -> tuple[dict[str, float], Outcome]:
    """What fits the recorded motion best, from a guess far off."""
    with Tosses(rows, substeps, guess) as tosses:
        problem = Problem(tosses)
        outcome = minimise(problem, "adam", evaluations, curriculum=curriculum, options={"lr": RATE})
        return {name: float(value) for name, value in problem.values(outcome.best.z).items()}, outcome


def run(quick: bool) -> Report:
    report = Report("B10")
    rows = recorded()
    if rows is None:
        report.skipped = f"the recorded tosses are not here ({FILE}); TAICHI_SIM_DATA names the folder they are in"
        return report
    every, known, evaluations = (rows[:8], 4, 24) if quick else (rows, 20, 48)
    series = []
    for law, steps, other, starts, bounds in LAWS:
        results = []
        for friction in (0.5,) if quick else starts:
            guess = {"friction": friction, **other}
            found, outcome = identify(every[:known], guess, steps, CURRICULUM, evaluations)
            results.append((outcome.best.loss, found))
            report.row(f"{law}: friction identified from {friction:g}", 0.185, found["friction"], 0.065)
            report.notes.append(f"{law}, from friction {friction:g}: {_words(found)}.")
            losses = [np.nan if loss is None else loss for loss in outcome.losses]
            series.append(Series(f"{law}, from {friction:g}", np.arange(len(losses)), 1e3 * np.sqrt(losses)))
        half = min(results, key=lambda one: one[0])[1]
        with Tosses(every, steps, half) as tosses:
            far, angle = tosses.score(half)
        report.notes.append(
            f"{law}, the best of these fits, {_words(half)}: {far.mean():.3f} widths, {angle.mean():.1f}° on all "
            f"{len(every)} tosses; {far[known:].mean():.3f} and {angle[known:].mean():.1f}° on those nothing was "
            "identified from."
        )
        # the error is that of what fits all tosses, as it is for the engines it is compared with
        found = half if quick else identify(every, {"friction": 0.5, **other}, steps, CURRICULUM, evaluations)[0]
        with Tosses(every, steps, found) as tosses:
            far, angle = tosses.score(found)
        report.at_most(f"{law}: error, widths", 0.2 if quick else bounds[0], far.mean())
        report.at_most(f"{law}: error, degrees", 30.0 if quick else bounds[1], angle.mean())
        report.notes.append(
            f"{law}, identified from all, {_words(found)}: {far.mean():.3f} widths, {angle.mean():.1f}° (medians "
            f"{np.median(far):.3f}, {np.median(angle):.1f}°)."
        )
    if not quick:
        law, steps, other, *_ = LAWS[0]
        direct, _ = identify(every[:known], {"friction": 1.0, **other}, steps, [], evaluations)
        report.notes.append(f"{law}, from friction 1 over whole tosses, without a curriculum: {_words(direct)}.")
    report.notes += [f"PyBullet, {what}: {far:.3f} widths, {angle:.1f}° on all 40." for far, angle, what in PYBULLET]
    report.plots.append(Plot(series, "evaluation", "√loss, m √s / 1000", "B10: identification of friction", logy=True))
    return report


def _words(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())


CASE = Case("B10", "cube tosses", run, slow=True)
