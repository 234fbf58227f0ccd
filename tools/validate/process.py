"""Programs as a user starts them, in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import taichi_sim

ROOT = Path(taichi_sim.__file__).resolve().parent.parent


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit code (negative: killed by that signal), what it said, and the seconds it took."""

    code: int
    output: str
    errors: str
    seconds: float

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.output + self.errors


def environment() -> dict[str, str]:
    """The environment in which this very package is imported."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path}


def python(code: str, folder: Path, timeout: float = 600.0) -> Ended:
    """Run a short program in ``folder``."""
    return _run([sys.executable, "-c", code], folder, timeout)


def command(words: Sequence[str], folder: Path, timeout: float = 600.0) -> Ended:
    """``taichi-sim WORDS`` in ``folder``."""
    return _run(_command(words), folder, timeout)


def killed(words: Sequence[str], folder: Path, after: Path, lines: int, timeout: float = 600.0) -> Ended:
    """``taichi-sim WORDS``, killed with SIGKILL once the file ``after`` holds ``lines`` lines."""
    began = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(_command(words), cwd=folder, env=environment(), **quiet)  # type: ignore[call-overload]
    while process.poll() is None and time.perf_counter() - began < timeout:
        if after.exists() and after.read_bytes().count(b"\n") >= lines:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    return Ended(process.wait(), "", "", time.perf_counter() - began)


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", "import sys; from taichi_sim.cli import main; sys.exit(main())", *words]


def _run(words: Sequence[str], folder: Path, timeout: float) -> Ended:
    began = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)
