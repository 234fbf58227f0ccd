"""Audits: every pair of solvers balances, what is put in is accounted for, and what is broken is found."""

import json

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.simulation.audit import MOMENTUM, Ledger, rows
from taichi_sim.simulation.world import World
from tests.simulation.audit_case import boxes, grains_and_solids, hinged, padded, points_on_a_block, stack
from tests.simulation.test_chambers_and_tendons import CHAMBER, RING_ROPE, ring
from tests.tiny import DELETE, tiny

OPEN = {"lower": [-1.0, -1.0], "upper": [2.0, 2.0], "spacing": 0.1, "walls": {"default": "slip"}}


def by_name(ledger: Ledger) -> dict:
    return {c.what: c for c in (*ledger.pairs(), *ledger.solvers())}


def audit(scene: Scene, precision: str = "f64", **more) -> Ledger:
    with Simulation(scene, precision=precision, **more) as sim:
        return sim.audit()


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_box_on_a_block(precision):
    """Both sides say the same of the contact; and the run is the same, bit by bit."""
    with Simulation(boxes(), precision=precision) as sim:
        names = ["bodies.block.position", "bodies.block.deformation", "rigid.box.velocity"]
        sim.run()
        plain = [np.array(sim.observe(name)) for name in names]
        ledger = sim.audit()
        assert all(np.array_equal(sim.observe(name), kept) for name, kept in zip(names, plain, strict=True))
        json.dumps(ledger.to_dict())
    assert not ledger.failures, ledger.failures
    checks = by_name(ledger)
    pair = checks["continuum + rigid"]
    assert pair.allowed == MOMENTUM[precision] and checks["continuum + rigid, turning"].allowed == pair.allowed
    assert pair.scale > 5.0 and (precision == "f32" or pair.share < 1e-14)
    assert all(checks[name].allowed is not None for name in ("continuum", "rigid", "continuum, turning"))
    weight, push = ledger.accounts["rigid"].acts["gravity"], ledger.accounts["rigid"].acts["forces"]
    assert weight.impulse[0, 1] == pytest.approx(-10.0 * 9.81 * 0.05, rel=0.02)
    assert push.work[0] == pytest.approx(ledger.to_dict()["energy"]["put_in"][0], rel=0.05)
    assert 0.0 < ledger.to_dict()["energy"]["lost"][0] < 10.0
    acts, tests = rows(ledger, 2)
    assert ("continuum", "rigid") in [row[:2] for row in acts] and all("FAILS" not in row[-1] for row in tests)


def test_nothing_is_lost_in_space_and_environments_are_apart():
    scene = boxes(domain=OPEN, gravity=[0.0, 0.0])
    scene.rigid["box"].force = [0.0, 0.0]
    with Simulation(scene, precision="f64", envs=2) as sim:
        sim.set("rigid.box.friction", [0.1, 0.6])
        ledger = sim.audit()
    assert not ledger.failures, ledger.failures
    total = sum(a.now.momentum - a.start.momentum for a in ledger.accounts.values())
    assert np.abs(total).max() < 1e-12
    rubbed = ledger.accounts["rigid"].acts["continuum"].impulse[:, 0]
    assert rubbed[1] < rubbed[0] - 1e-3 < 0.0


@pytest.mark.slow
def test_a_ball_on_a_block_and_a_floor_in_space():
    """In three dimensions, touching both: the free velocity is read before contacts are read again."""
    table = {
        "format": 1, "dim": 3, "duration": 0.02, "frame_dt": 0.01, "gravity": [0.0, 0.0, -9.81],
        "domain": {"upper": [1.0, 1.0, 1.0], "spacing": 0.1, "walls": {"default": {"kind": "separate"}}},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.2, 0.4, 0.0], "upper": [0.4, 0.6, 0.2]},
                             "material": "jelly"}},
        "rigid": {"ball": {"shape": {"kind": "sphere", "center": [0.5, 0.5, 0.1], "radius": 0.1}, "mass": 5.0,
                           "velocity": [-3.0, 0.0, 0.0]}},
    }  # fmt: skip
    ledger = audit(Scene.from_dict(table))
    assert not ledger.failures, ledger.failures
    assert ledger.accounts["rigid"].acts["continuum"].impulse[0, 0] > 0.01
    assert ledger.accounts["rigid"].acts["walls"].impulse[0, 2] > 0.5


@pytest.mark.slow
def test_crates_that_meet_in_space():
    """In single precision too: what two bodies give each other cancels, however stiff their friction is."""
    scene = stack(gravity=[0.0, 0.0])
    for name, speed in (("high", -1.0), ("thrown", 3.0)):
        scene.rigid[name].position, scene.rigid[name].velocity = [0.0, 1.0], [speed, 0.1]
    for name in ("low", "post"):
        del scene.rigid[name]
    ledger = audit(scene, "f32")
    assert not ledger.failures and by_name(ledger)["rigid"].share < 1e-6
    assert not ledger.accounts["rigid"].acts["walls"].impulse.any() and ledger.to_dict()["energy"]["lost"][0] > 0.5


def test_crates():
    """Impulses of contact recomputed from the law, of the floor and what is held; turning too."""
    ledger = audit(stack())
    assert not ledger.failures, ledger.failures
    checks = by_name(ledger)
    assert checks["rigid"].share < 1e-11 and checks["rigid, turning"].share < 1e-11  # what Newton leaves
    assert checks["rigid, turning"].allowed is not None
    acts = ledger.accounts["rigid"].acts
    assert acts["walls"].impulse[0, 1] > 0.4 * -acts["gravity"].impulse[0, 1] > 0.0
    energy = ledger.to_dict()["energy"]
    assert energy["lost"][0] > 1.0 and energy["put_in"] == [0.0]


@pytest.mark.slow
def test_rebounds():
    """Impacts split steps: every piece's impulses count."""
    scene = stack()
    scene.rigid["thrown"].restitution = 0.5
    ledger = audit(scene)
    assert not ledger.failures and by_name(ledger)["rigid"].allowed is not None


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_grains_and_points_against_solids(precision):
    ledger = audit(grains_and_solids(), precision)
    assert not ledger.failures, ledger.failures
    checks = by_name(ledger)
    assert checks["rigid + particles"].scale > 10.0 and checks["rigid + particles"].allowed == MOMENTUM[precision]
    assert checks["particles"].allowed is not None
    assert ledger.accounts["particles"].acts["fixed bodies"].impulse[0, 1] > 10.0
    assert ledger.accounts["particles"].acts["held"].size[0] > 0.0


def test_a_pad_welded_to_a_box():
    ledger = audit(padded())
    assert not ledger.failures and by_name(ledger)["continuum + rigid"].share < 1e-14


@pytest.mark.slow
def test_a_box_on_a_driven_hinge_against_a_block():
    """What joints hold back does not show; what acts along them does, on both sides."""
    ledger = audit(hinged())
    assert not ledger.failures, ledger.failures
    pair = by_name(ledger)["continuum + rigid, along joints"]
    assert pair.share < 1e-13 and pair.scale > 1.0 and pair.allowed is not None


@pytest.mark.parametrize("precision, friction", [("f32", 0.4), ("f64", 0.0)])
def test_points_on_a_block(precision, friction):
    """Friction acts at the centres of both: that turning is not kept then is said, and tested without it."""
    ledger = audit(points_on_a_block(friction=friction), precision)
    assert not ledger.failures, ledger.failures
    checks, acts = by_name(ledger), ledger.accounts["particles"].acts
    assert checks["continuum + particles"].scale > 1.0 and acts["continuum"].impulse[0, 1] > 1.0
    turning = checks["continuum + particles, turning"]
    assert (turning.allowed is None and "centres" in turning.why) if friction else turning.share < 1e-13
    assert all(checks[name].allowed is not None for name in ("continuum", "particles"))
    assert acts["held"].size[0] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["continuum", "particles"])
def test_all_three_at_once(kind):
    """A box between a block and grains, which all touch: who meets whom first does not matter to the audit."""
    table = points_on_a_block().to_dict()
    table["rigid"] = {"box": {"shape": {"kind": "box", "lower": [0.3, 0.31], "upper": [0.5, 0.4]}, "mass": 2.0,
                              "velocity": [0.0, -1.0], "no_contact": []}}  # fmt: skip
    table["grains"]["sand"]["shape"] = {"kind": "box", "lower": [0.4, 0.41], "upper": [0.58, 0.55]}
    if kind == "particles":
        table["rigid"]["box"]["no_contact"] = ["block"]
    else:
        table["rigid"]["box"]["no_contact"] = ["sand", "rope"]
    ledger = audit(Scene.from_dict(table))
    assert not ledger.failures, ledger.failures
    checks = by_name(ledger)
    assert checks["continuum + particles"].share < 1e-13 and checks["continuum + particles"].scale > 0.1
    pair = checks["continuum + rigid" if kind == "continuum" else "rigid + particles"]
    assert pair.share < 1e-13 and np.abs(ledger.accounts[kind].acts["rigid"].impulse).max() > 0.1


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_grains_against_a_box_on_a_hinge(precision):
    table = grains_and_solids().to_dict()
    table["joints"] = {"pin": {"kind": "hinge", "child": "box", "anchor": [0.25, 0.16], "damping": 0.05}}
    table["rigid"]["box"]["velocity"] = [0.0, 0.0]
    del table["rigid"]["shelf"]
    table["duration"] = 0.05
    ledger = audit(Scene.from_dict(table), precision)
    assert not ledger.failures, ledger.failures
    pair = by_name(ledger)["rigid + particles, along joints"]
    assert (precision == "f32" or pair.share < 1e-13) and pair.scale > 0.01 and pair.allowed is not None


def test_chambers_and_tendons():
    """They act before what touches: a tendon through a block with a box on it; both on springs."""
    table = boxes().to_dict() | {"actuators": {"pull": {
        "kind": "tendon", "body": "block", "points": [[0.9, 0.5], [0.7, 0.2], [0.3, 0.2]],
        "through": ["world", "block", "block"], "strength": 50.0, "signal": {"kind": "constant", "value": 1.0},
    }}}  # fmt: skip
    ledger = audit(Scene.from_dict(table))
    assert not ledger.failures, ledger.failures
    acts, checks = ledger.accounts["continuum"].acts, by_name(ledger)
    assert acts["actuators"].impulse[0, 0] > 0.1 and acts["rigid"].size[0] > 0.1
    assert checks["continuum"].share < 1e-13 and checks["continuum + rigid"].share < 1e-13
    ledger = audit(ring(cable=RING_ROPE, air=CHAMBER))
    assert not ledger.failures, ledger.failures
    assert ledger.accounts["particles"].acts["actuators"].impulse[0, 0] > 0.1
    assert by_name(ledger)["particles"].share < 1e-12 and ledger.to_dict()["energy"]["put_in"][0] > 0.0


def test_motors_put_work_in():
    """A cart on a rail: energy follows the work of its motor, and without it the audit would cry out."""
    table = Scene.load("cart_pole").to_dict()
    table |= {"duration": 12 * table["frame_dt"]}
    ledger = audit(Scene.from_dict(table))
    assert not ledger.failures and by_name(ledger)["rigid"].allowed is None
    energy = ledger.to_dict()["energy"]
    work = energy["put_in"][0]
    assert work > 0.03 and 0.0 < energy["lost"][0] < 0.3 * work
    ledger.put_in = [0.0 * one for one in ledger.put_in]
    assert ["energy created" in line for line in ledger.failures] == [True]


def test_muscles_fields_and_accelerations():
    ledger = audit(tiny({"fields.wind.signal": DELETE}))
    assert not ledger.failures, ledger.failures
    acts = ledger.accounts["continuum"].acts
    assert set(acts) >= {"gravity", "walls", "fields", "damping", "actuators", "forces"}
    assert acts["actuators"].work[0] != 0.0 and not acts["actuators"].impulse.any()
    assert acts["fields"].impulse[0, 0] > 0.0 > acts["damping"].work[0]
    assert by_name(ledger)["continuum"].share < 1e-13


@pytest.mark.parametrize("name, duration", [("grain_hopper", 0.1), ("mass_spring_robot", 0.4)])
def test_particles(name, duration):
    """Grains against what is held, springs that are driven against a wall."""
    ledger = audit(Scene.from_dict(Scene.load(name).to_dict() | {"duration": duration}))
    assert not ledger.failures, ledger.failures
    checks = by_name(ledger)
    assert checks["particles"].share < 1e-12 and checks["particles, turning"].share < 1e-12
    acts = ledger.accounts["particles"].acts
    assert acts["held" if name == "grain_hopper" else "walls"].impulse[0, 1] > 0.0


# ---- what is broken is found ----


def _after_each(monkeypatch, change) -> None:
    whole = World._step

    def step(self, k0, k1, record):
        whole(self, k0, k1, record)
        change(self.solvers, k1)

    monkeypatch.setattr(World, "_step", step)


@pytest.mark.parametrize(
    "family, array, found",
    [("rigid", "velocity", "continuum + rigid: "), ("rigid", "spin", "continuum + rigid, turning: "),
     ("continuum", "v", "continuum: ")],
)  # fmt: skip
def test_a_push_out_of_nowhere_is_found(monkeypatch, family, array, found):
    """A millionth of a speed a step, on one side only."""
    _after_each(monkeypatch, lambda solvers, k: np.add.at(solvers[family].store.view(array)[k], (0, 0), 1e-6))
    lines = audit(boxes()).failures
    assert any(line.startswith(found) for line in lines), lines


def test_a_contact_that_pushes_one_side_more_is_found(monkeypatch):
    from taichi_sim.solvers.coupling.stepper import Coupling

    whole = Coupling.enter

    def enter(self, k, frame, epoch):
        whole(self, k, frame, epoch)
        span, pool = self.store.view("span")[k, 0], self.pool.view
        for j in range(span[0], span[0] + span[1]):
            p = pool("record")[j, 0]
            v = self.host.store.view("v")[k]
            v[p] += 1e-3 * (v[p] - pool("after")[j])

    monkeypatch.setattr(Coupling, "enter", enter)
    ledger = audit(boxes())
    lines = ledger.failures
    assert lines and all(line.startswith("continuum + rigid") for line in lines), lines
    pushed = ledger.accounts["continuum"].acts["rigid"].impulse + ledger.accounts["rigid"].acts["continuum"].impulse
    assert np.abs(pushed).max() == pytest.approx(
        1e-3 * ledger.accounts["rigid"].acts["continuum"].impulse[0, 1], rel=0.05
    )


@pytest.mark.parametrize(
    "scene, found",
    [(padded, "continuum + rigid: "), pytest.param(hinged, "continuum + rigid, along", marks=pytest.mark.slow),
     (grains_and_solids, "rigid + particles: "), (points_on_a_block, "continuum + particles: ")],
)  # fmt: skip
def test_a_pair_that_takes_more_than_it_gives_is_found(monkeypatch, scene, found):
    """Ten millionths more, on one side."""
    from taichi_sim.solvers.coupling.sphere_stepper import Spheres
    from taichi_sim.solvers.coupling.stepper import Coupling

    coupled, met = Coupling.enter, Spheres.enter

    def enter(self, k, frame, epoch):
        coupled(self, k, frame, epoch)
        v = self.matter.arrays["mpm_v"].to_numpy()
        if self.plan.welds:
            p, before = self.store.view("weld_at")[k], self.store.view("weld_after")[k]
        else:
            span, pool = self.store.view("span")[k, 0], self.pool.view
            at = np.arange(span[0], span[0] + span[1])
            p, before = pool("record")[at, 0], pool("after")[at]
        v[k, p] += 1e-5 * (v[k, p] - before)
        self.matter.arrays["mpm_v"].from_numpy(v)

    def meet(self, k, frame, epoch):
        met(self, k, frame, epoch)
        begin, count = self.store.view("pairs")[k, 0]
        pair, before = self.pool.view("pair"), self.pool.view("particle_before")
        for j in range(begin, begin + count):
            if pair[j, 2]:
                v = self.mpm.store.view("v")[k, pair[j, 0]]
                v += 1e-5 * (v - before[j])

    monkeypatch.setattr(Coupling, "enter", enter)
    monkeypatch.setattr(Spheres, "enter", meet)
    lines = audit(scene()).failures
    assert any(line.startswith(found) for line in lines), lines


def test_energy_from_nowhere_is_found(monkeypatch):
    """Speeds that grow keep the momentum of crates that fly apart."""
    scene = stack(gravity=[0.0, 0.0])
    for name, speed in (("low", -1.0), ("high", 1.0)):
        scene.rigid[name].velocity = [speed, 0.0]

    def faster(solvers, k):
        solvers["rigid"].store.view("velocity")[k] *= 1.0005

    _after_each(monkeypatch, faster)
    lines = audit(scene).failures
    assert any(line.startswith("energy created") for line in lines), lines


def test_grains_that_do_not_answer_are_found(monkeypatch):
    """Every grain gathers its own forces: that they are equal and opposite is not for granted."""
    scene = Scene.from_dict(Scene.load("grain_hopper").to_dict() | {"duration": 0.05})
    _after_each(monkeypatch, lambda solvers, k: np.add.at(solvers["particles"].store.view("v")[k], (5, 0), 1e-7))
    lines = audit(scene).failures
    assert any(line.startswith("particles") for line in lines), lines
