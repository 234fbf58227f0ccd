"""A variant in a process of its own, as the parent sees it."""

import dataclasses
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import plain_reference
from bench.scenes import BenchScene
from bench.variant import Kind, Unavailable

TOOLS = Path(__file__).resolve().parent.parent
ROOT = TOOLS.parent
PATIENCE_S = 3600.0


class Failed(Exception):
    """The worker died or took too long; the message holds the end of what it wrote."""


def environment(cache: Path | None = None) -> dict[str, str]:
    """Environment of a worker: this checkout first on the path, compiled kernels in ``cache``."""
    path = [str(TOOLS), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    result = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    if cache is not None:
        result |= {"TI_OFFLINE_CACHE_FILE_PATH": str(cache), "BENCH_WARP_CACHE": str(cache)}
    return result


def cache_folder(kind: Kind, scene: BenchScene) -> Path:
    """Where what ``kind`` compiles for ``scene`` is kept: one folder per version of its source."""
    folder = Path(__file__).parent
    sources = [*sorted(folder.glob(f"{kind.name}.*")), folder / "scenes.py"]
    text = b"".join(path.read_bytes() for path in sources)
    digest = hashlib.sha256(text + f"{scene.name} {scene.slots} {platform.python_version()}".encode()).hexdigest()
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "taichi-sim-bench" / f"{kind.name}-{scene.name}-{digest[:12]}"


class Worker:
    """Starts on construction and is ready when that returns. Close it, or use it as a context.

    Raises ``Unavailable`` where the variant cannot run, ``Failed`` where it does not come up.
    """

    def __init__(self, kind: Kind, scene: BenchScene, threads: int, cache: Path) -> None:
        self.started = time.perf_counter()
        cache.mkdir(parents=True, exist_ok=True)
        if kind.name == "plain_reference":
            command = plain_reference.command(scene, threads, cache)
        else:
            description = json.dumps(dataclasses.asdict(scene))
            command = [sys.executable, "-m", "bench.worker", kind.name, description, str(threads)]
        self._complaints = tempfile.TemporaryFile("w+", errors="replace")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment(cache),
        )
        try:
            hello = self._read()
            if "unavailable" in hello:
                raise Unavailable(hello["unavailable"])
        except BaseException:
            self.close()
            raise
        self.has_gradient: bool = hello["has_gradient"]

    @property
    def age_s(self) -> float:
        """Seconds since it was started, compilation of the program included."""
        return time.perf_counter() - self.started

    def ask(self, word: str) -> dict[str, Any]:
        """Send one word of the protocol and wait for the reply."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # reading says why
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        timer = threading.Timer(PATIENCE_S, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            status = self._process.wait()
            self._complaints.seek(0)
            tail = self._complaints.read().strip().splitlines()[-1:] or ["no message"]
            raise Failed(f"its process ended with status {status}: {tail[0]}")
        return json.loads(line)

    def close(self) -> None:
        """Let the worker end and wait for it."""
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._complaints.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def empty(folder: Path) -> None:
    """Forget what was compiled there."""
    shutil.rmtree(folder, ignore_errors=True)


def remembered(folder: Path) -> Mapping[str, float] | None:
    """Times of the start that filled ``folder``, if it was filled."""
    try:
        return json.loads((folder / "cold.json").read_text())
    except (OSError, ValueError):
        return None


def remember(folder: Path, times: Mapping[str, float]) -> None:
    (folder / "cold.json").write_text(json.dumps(dict(times)))
