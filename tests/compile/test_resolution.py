"""From which coordinate on positions are too coarse, in either precision."""

import numpy as np
import pytest
from stub import plan

from taichi_sim.compile.continuum.resolution import resolution_notes


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_each_precision_has_its_end(precision):
    eps = float(np.finfo({"f32": np.float32, "f64": np.float64}[precision]).eps)
    fix = "move the scene near the origin" + (" or use precision f64" if precision == "f32" else "")
    for share, outcome in ((0.0009, "fine"), (0.0011, "note"), (0.0099, "note"), (0.0101, "refused")):
        x = share * 0.1 / eps
        far = plan(lower=(0.0, 0.0), upper=(0.8, x))
        if outcome == "refused":
            with pytest.raises(ValueError, match=rf"^domain.upper\[1\] = .* {precision} positions .*; {fix}$"):
                resolution_notes(far, precision, 1.0, 1.0)
        else:
            notes = resolution_notes(far, precision, 1.0, 1.0)
            assert bool(notes) == (outcome == "note") and all(n.endswith(fix) for n in notes)
