"""Which rigid bodies are so thin that matter on both sides needs two layers of the grid."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.continuum.sizes import check_grid_memory, check_size
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.solvers.coupling.colliders import THIN, Colliders
from taichi_sim.solvers.mpm.layers import MOST_PLATES
from taichi_sim.solvers.rigid.attitude import matrices


def part(
    soft: Continuum, rigid: RigidFamily, colliders: Colliders, owner: list[int], mixed: list[int], finest: float,
    values: Values,
) -> tuple[list[str], dict[str, float]]:  # fmt: skip
    """Give the continua's grid two layers where ``colliders`` of the bodies ``owner`` are thin boxes, and say so; and
    what is thin but cannot be a plate. Bodies in ``mixed`` let some of the continua through.

    Matter rests half its spacing, of which ``finest`` (m) is the least, from either face: thin is what leaves the two
    less than three cells apart. A single solid that begins on one side of a plate (a cube between jaws) is taken to
    stay on one: nothing is paid for it. Raises ``ValueError`` for a grid that memory does not hold twice.

    Also returns the bodies that are thick now, and at what scale they would no longer be.
    """
    plan, bodies, matter = soft.plan, rigid.bodies, soft.matter.bodies
    scale = np.array([np.min(values[f"rigid.{bodies[b].name}.scale"]) for b in owner])
    below = THIN * plan.spacing - finest
    no = [c for c, b in enumerate(owner) if b in mixed or any(plan.periodic)]
    seen = _seen(soft, rigid, owner, scale, values)
    plates, alone = colliders.part(below, scale, no), []
    if len(matter) == 1 and matter[0].law.kind == "solid":
        alone = colliders.one_sided(seen)
        plates = colliders.part(below, scale, no + alone)
    if plates:
        colliders.away_from(seen)
        soft.plan = soft.contacts.plan = replace(plan, plates=plates)
        soft.stored_nodes *= 2
        check_size(soft.plan)
        check_grid_memory(soft.plan, soft.scene.frames)
    parted, glued, thick = {}, {}, {}
    for c, (b, plate) in enumerate(zip(owner, colliders.are_plates(), strict=True)):
        sides = colliders.sides(c) * scale[c]
        name, cells = bodies[b].name, float(sides.min()) / plan.spacing
        if sides.min() >= below * (1 - 1e-9):
            thick[name] = max(float(below * scale[c] / sides.min()), thick.get(name, 0.0))
        if plate:
            parted[b] = (
                f"rigid.{name} is {cells:.2g} cells thick: matter on its two sides gets a layer of the grid each, so "
                "that neither sticks to the other (a substep takes longer, and the grid twice the memory)"
            )
        elif sides.min() < below * (1 - 1e-9) <= sides.max() and c not in alone:
            glued[b] = (
                f"rigid.{name} is {cells:.2g} cells thick: matter that lies on two sides of it sticks together through "
                f"the grid; {_way_out(soft, b in mixed, plates == MOST_PLATES)}"
            )
    return [*parted.values(), *(note for b, note in glued.items() if b not in parted)], thick


def thinned(thick: Mapping[str, float], values: Values) -> list[str]:
    """Notes of bodies that were ``thick`` (see :func:`part`) when the scene was built and are not at ``values``."""
    return [
        f"rigid.{name}.scale has made it so thin (below {limit:.3g}) that matter on its two sides may stick together "
        "through the grid; build the simulation with that scale, for two layers of the grid"
        for name, limit in thick.items()
        if np.min(values[f"rigid.{name}.scale"]) < limit * (1 - 1e-9)
    ]


def _seen(
    soft: Continuum, rigid: RigidFamily, owner: list[int], scale: np.ndarray, values: Values
) -> dict[int, np.ndarray]:
    """Places (particles, dim), m, of all matter at the start from the pivot of each body, in its axes and at scale 1;
    in the first environment."""
    motion, x = rigid.joints.forward(values, rigid.start.motion(values)), soft.begin(values)["x"][0]
    turned, centres = matrices(motion["rotation"][0], soft.plan.dim), rigid.shapes.centres(values)[0]
    position = motion["position"][0]
    return {b: ((x - position[b]) @ turned[b] + centres[b]) / s for b, s in zip(owner, scale, strict=True)}


def _way_out(soft: Continuum, mixed: bool, full: bool) -> str:
    if any(soft.plan.periodic):
        return "thin bodies keep it apart in domains that are not periodic only"
    if mixed:
        return "thin bodies keep it apart only where no_contact names none of the continua"
    if full:
        return f"{MOST_PLATES} thin boxes keep it apart, and no more"
    return "flat boxes keep it apart, other shapes should be three cells thick"
