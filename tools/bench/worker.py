"""One variant of one scene in a process of its own: ``python -m bench.worker VARIANT SCENE_JSON THREADS``.

The parent writes one word per line (``forward``, ``forward_backward``, ``result``; end of file ends the worker) and
reads one JSON object per line. The first line says whether the variant is ready or why it cannot run. Whatever a
library prints goes to standard error.
"""

import dataclasses
import json
import os
import resource
import sys
import time
from typing import Any, TextIO

from bench.scenes import BenchScene
from bench.variant import Unavailable, Variant, load


def peak_mb() -> float:
    """Largest resident memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def _timed(run: Any) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def answer(variant: Variant, word: str) -> dict[str, Any]:
    """The reply to one word of the parent."""
    if word == "forward":
        return _timed(variant.forward)
    if word == "forward_backward":
        return _timed(variant.forward_backward)
    if word == "result":
        return {**dataclasses.asdict(variant.result()), "peak_mb": peak_mb()}
    raise ValueError(f"unknown word {word!r}")


def serve(kind: str, scene: BenchScene, threads: int, requests: TextIO, replies: TextIO) -> None:
    """Load the variant and answer until the parent closes its end."""

    def reply(content: dict[str, Any]) -> None:
        replies.write(json.dumps(content) + "\n")
        replies.flush()

    try:
        variant = load(kind, scene, threads)
    except Unavailable as reason:
        return reply({"unavailable": str(reason)})
    reply({"ready": True, "has_gradient": variant.has_gradient})
    for line in requests:
        reply(answer(variant, line.strip()))


def main(arguments: list[str]) -> None:
    kind, scene_json, threads = arguments
    table: dict[str, Any] = json.loads(scene_json)
    table |= {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    scene = BenchScene(**table)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(kind, scene, int(threads), sys.stdin, replies)


if __name__ == "__main__":
    main(sys.argv[1:])
