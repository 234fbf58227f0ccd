"""The scenes of the benchmark: plain data that every variant is built from.

One elastic box falls onto the floor of a closed container. Numbers are SI. Axis ``dim - 1`` points up. The variants
that own their grid have ``nodes`` nodes along each axis, node ``i`` at ``(i - PAD) * dx``. The lower walls stand at
node ``PAD`` and the upper ones at node ``nodes - PAD``, so that the container is ``nodes - 2 * PAD`` cells wide.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

PAD = 2
DENSITY = 1000.0  # kg/m³
YOUNGS_MODULUS = 3e5  # Pa
POISSON_RATIO = 0.25
MU = YOUNGS_MODULUS / (2 * (1 + POISSON_RATIO))  # Pa, Lamé
LAMBDA = YOUNGS_MODULUS * POISSON_RATIO / ((1 + POISSON_RATIO) * (1 - 2 * POISSON_RATIO))  # Pa, Lamé


@dataclass(frozen=True)
class BenchScene:
    """One scene. ``counts`` particles per axis stand half a cell apart on a lattice above cell ``corner``."""

    name: str
    nodes: int  # grid nodes along each axis
    counts: tuple[int, ...]
    corner: tuple[float, ...]  # lower corner of the box, cells from the lower walls
    velocity: tuple[float, ...]  # m/s
    dt: float  # s
    steps: int  # substeps of one run
    substeps: int  # substeps per control frame
    gravity: float = -9.8  # m/s², along the up axis
    friction: float = 0.0  # of the walls
    muscle: float = 0.0  # Pa, constant active stress along the up axis in the lower-x half of the box
    environments: int = 1
    memory: str = "3GB"  # what ours may keep of the trajectory; here: everything
    capacity: int = 0  # steps that per-step storage is allocated for; 0: as many as are run

    @property
    def dim(self) -> int:
        return len(self.counts)

    @property
    def n(self) -> int:
        """Particles of one environment."""
        return math.prod(self.counts)

    @property
    def dx(self) -> float:
        return 1.0 / self.nodes

    @property
    def cells(self) -> int:
        """Cells between two opposite walls."""
        return self.nodes - 2 * PAD

    @property
    def slots(self) -> int:
        """Steps that per-step storage is allocated for."""
        return max(self.capacity, self.steps)

    @property
    def lower(self) -> np.ndarray:
        """Lower corner of the box, metres from the lower walls, (dim,)."""
        return np.array(self.corner) * self.dx

    @property
    def upper(self) -> np.ndarray:
        """Upper corner of the box, metres from the lower walls, (dim,)."""
        return self.lower + np.array(self.counts) * self.dx / 2

    @property
    def particle_volume(self) -> float:
        """m³ (m² in 2-D)."""
        return (self.dx / 2) ** self.dim

    @property
    def particle_mass(self) -> float:
        """kg (kg/m in 2-D)."""
        return DENSITY * self.particle_volume

    def positions(self) -> np.ndarray:
        """Starting positions, metres from the lower walls, (n, dim), in lattice order."""
        axes = [(np.arange(count) + 0.5) * self.dx / 2 for count in self.counts]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim) + self.lower

    def in_muscle(self, positions: np.ndarray) -> np.ndarray:
        """Which starting positions belong to the muscle, (n,) bool."""
        return positions[:, 0] < (self.lower[0] + self.upper[0]) / 2

    def sorted_positions(self) -> np.ndarray:
        """Starting positions in the order of blocks of 4 cells and of the cells in them, (n, dim)."""
        positions = self.positions()
        cell = ((positions / self.dx) + PAD - 0.5).astype(np.int64)
        key = np.zeros(self.n, np.int64)
        for digit in (cell >> 2, cell & 3):
            for axis in range(self.dim):
                key = key * 256 + digit[:, axis]
        return positions[np.argsort(key, kind="stable")]


_BOX_3D = BenchScene("box_3d", 64, (30, 40, 25), (22, 20, 1), (0.5, 0.0, -3.0), dt=2e-4, steps=100, substeps=20)
_TINY = BenchScene("tiny_2d", 32, (40, 25), (4, 2), (0.2, -2.0), dt=4e-4, steps=1000, substeps=100)
_LONG = BenchScene(
    "long_2d", 64, (50, 40), (17, 1), (0.0, 0.0), dt=2e-4, steps=20_000, substeps=100, gravity=-1.0, memory="500MB"
)

SCENES: dict[str, BenchScene] = {
    scene.name: scene
    for scene in (
        _BOX_3D,
        dataclasses.replace(_BOX_3D, name="muscle_3d", friction=0.5, muscle=2e4),
        BenchScene("box_2d", 128, (100, 100), (37, 6), (0.5, -2.0), dt=1e-4, steps=1000, substeps=100),
        _TINY,
        dataclasses.replace(_TINY, name="tiny_2d_x8", environments=8),
        _LONG,
        dataclasses.replace(_LONG, name="longer_2d", steps=100_000),
    )
}


def shortened(scene: BenchScene, factor: int = 20) -> BenchScene:
    """The same scene over a fraction of its frames; storage is still laid out for all of them, as kernels that know
    their fields' sizes would otherwise have to be compiled again."""
    frames = max(1, scene.steps // (factor * scene.substeps))
    substeps = scene.substeps if frames > 1 else max(5, scene.steps // factor)
    return dataclasses.replace(scene, steps=frames * substeps, substeps=substeps, capacity=scene.steps)


#: Scenes measured together, so that they can be compared with each other.
GROUPS: tuple[tuple[str, ...], ...] = (("box_3d",), ("muscle_3d",), ("box_2d",), ("tiny_2d", "tiny_2d_x8"))

#: Scenes that are about memory: one forward and backward run each.
ONCE: tuple[str, ...] = ("long_2d", "longer_2d")
