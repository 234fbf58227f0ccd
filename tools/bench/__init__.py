"""Speed and memory, side by side with the same step written in other ways; run ``python tools/bench``."""
