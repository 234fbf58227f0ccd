"""Contact-gradient policies: the law a policy puts in place of the exact one, at the same velocities."""

import numpy as np
import pytest

from taichi_sim.runtime import ti
from taichi_sim.scene.schema import CONTACT_GRADIENTS
from taichi_sim.solvers.rigid.law import impulse
from taichi_sim.solvers.rigid.softening import POLICIES, soften

COLUMNS, SPEEDS = 20, 9


@ti.kernel
def law_after(settings: ti.types.ndarray(), dof: ti.types.ndarray(), contact: ti.types.ndarray(),
              contact_body: ti.types.ndarray(), felt: ti.types.ndarray(), n: ti.i32, h: ti.f64):  # fmt: skip
    """Impulses of the softened laws, a little to both sides of the velocities they were softened at."""
    for i in range(n):
        soften(3, 0, 1, i, 1, 0, 0, h, settings, dof, contact, contact_body)
        c = contact[i]
        normal = ti.Vector([c[0], c[1], c[2]])
        for side in range(3):
            v = ti.Vector([dof[0, 1], dof[1, 1], dof[2, 1]]) + (side - 1) * 1e-6 * normal
            _gamma, gn = impulse(v, normal, c[10], c[11], c[12], c[13], c[14], 0, 0.0)
            felt[i, side] = gn


def softened(policy: str, speed: float, rows: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Contacts after softening (n, 20), and normal impulses (n, 3) at ``speed`` - 1e-6, ``speed``, ``speed`` + 1e-6."""
    n = len(rows)
    contact = ti.Vector.ndarray(COLUMNS, ti.f64, n)
    contact.from_numpy(rows)
    bodies = ti.Vector.ndarray(2, ti.i32, n)
    bodies.from_numpy(np.tile(np.array([0, -1], np.int32), (n, 1)))
    dof, settings, felt = ti.ndarray(ti.f64, (6, 6)), ti.ndarray(ti.f64, 7), ti.ndarray(ti.f64, (n, 3))
    columns = np.zeros((6, 6))
    columns[:3, 1] = [0.3, 0.0, speed]
    dof.from_numpy(columns)
    settings.from_numpy(np.array([0.0, 0.0, 0.0, *POLICIES[policy]]))
    law_after(settings, dof, contact, bodies, felt, n, h)
    return contact.to_numpy(), felt.to_numpy()


def contacts(h: float) -> np.ndarray:
    """Gaps from -1 mm to 20 mm on a floor, K 0.4 kg, friction 0.3, damping 0.5 s/m, stiction speed 1e-4 m/s."""
    rows = np.zeros((SPEEDS, COLUMNS))
    gap = np.array([-1e-3, -1e-5, 0.0, 1e-6, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2])
    rows[:, 2], rows[:, 9], rows[:, 10], rows[:, 11] = 1.0, gap, 0.4, -gap / h
    rows[:, 12], rows[:, 13], rows[:, 14] = 0.3, 0.5, 1e-4
    return rows


def test_the_scene_knows_all_policies():
    assert tuple(POLICIES) == CONTACT_GRADIENTS


@pytest.mark.parametrize("speed", [-1.0, -1e-3, 0.0, 0.05, 0.5, 3.0])
def test_exact_changes_nothing(f64, speed):
    rows = contacts(1e-3)
    after, _ = softened("exact", speed, rows, 1e-3)
    assert np.array_equal(after[:, :17], rows[:, :17])


@pytest.mark.parametrize("speed", [-1.0, -1e-3, 0.0, 0.05, 0.5, 3.0])
def test_smoothed_keeps_the_impulse_and_gives_way(f64, speed):
    h = 1e-3
    rows = contacts(h)
    _, exact = softened("exact", speed, rows, h)
    after, felt = softened("smoothed", speed, rows, h)
    assert felt[:, 1] == pytest.approx(exact[:, 1], rel=1e-12, abs=1e-300)
    pushed = rows[:, 11] > speed + 1e-6
    damping = 10.0 if speed < 0.1 else 0.5  # what flies off faster than 1/damping would not be pushed
    brake = 1.0 - damping * speed
    slope = 0.01 * 0.4 * brake + damping * exact[:, 1] / brake
    if brake > 0:
        assert (felt[:, 0] - felt[:, 2])[pushed] == pytest.approx(2e-6 * slope[pushed], rel=1e-6)
    assert np.isfinite(after).all() and (after[:, 14] == 0.02).all()


def test_distance_pushes_before_touch(f64):
    h, speed = 1e-3, -0.2
    rows = contacts(h)
    after, felt = softened("distance", speed, rows, h)
    reach, x = 1e-3 / h, rows[:, 11] - speed
    push = 0.4 * 0.5 * (x + np.sqrt(x * x + reach * reach)) * (1.0 - 0.5 * speed)
    assert felt[:, 1] == pytest.approx(push, rel=1e-12)
    assert (np.diff(felt[:, 1]) < 0).all() and (felt[:, 0] > felt[:, 2]).all()
    assert np.isfinite(after).all()
