"""Contact-gradient policies side by side, against the trend of the loss itself.

Every policy (``solvers.rigid.softening``) gives gradients of the same forward pass. Which of them says where the loss
goes is a question to the loss: values at nearby starts, and the slope of a regression on them, which is the finite
difference of the loss smoothed by the perturbations (``spread``). The mean of exact gradients over the starts is the
policy ``randomised``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from taichi_sim.optimization.spread import SpreadReport, gradient_spread
from taichi_sim.scene.schema import CONTACT_GRADIENTS, Scene

__all__ = ["compare_policies"]


def compare_policies(
    scene: Any,
    of: str = "loss",
    wrt: "str | Iterable[str] | None" = None,
    around: Mapping[str, Any] | None = None,
    samples: int = 50,
    seed: int = 0,
    **settings: Any,
) -> dict[str, SpreadReport]:
    """A :class:`SpreadReport` of the same starts by policy: ``exact`` (``event``, which is the same, where bodies
    rebound), ``smoothed``, ``distance``. Arguments as of :func:`gradient_spread`. Costs as many gradients of
    ``samples`` environments as there are policies. Raises ``ValueError`` for a scene without rigid bodies.
    """
    scene = scene if hasattr(scene, "to_dict") else Scene.load(scene)
    if not scene.rigid:
        raise ValueError("contact-gradient policies are of rigid bodies ([rigid.NAME], [robots.NAME]); there are none")
    found = {}
    for policy in CONTACT_GRADIENTS:
        if policy in ("event", "randomised"):  # exact gradients by other names: of bodies that rebound, and their mean
            continue
        chosen = scene.copy()
        chosen.solver.contact_gradient = policy
        found[policy] = gradient_spread(chosen, of, wrt, around, samples, seed, **settings)
    return found
