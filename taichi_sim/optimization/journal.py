"""Every evaluation on disk as soon as it is made, so that a killed optimisation continues as if nothing had happened.

The methods are deterministic functions of the evaluations they have seen. So no optimiser state is saved: a resumed run
starts from the beginning and is served what was already simulated, bit for bit, until it asks for something new.
"""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.io.atomic import write_atomic, writing
from taichi_sim.optimization.problem import Point

__all__ = ["Journal"]

_FORMAT = 1


#: What a journal that was there before, and was not resumed, is called from then on.
BEFORE = "evaluations.before.jsonl"


class Journal:
    """Evaluations by horizon and the exact bits of their scaled variables; one JSON line each in ``file`` (``None``:
    memory only). What was measured beside them (:meth:`measured`) is among the lines.

    ``identity`` holds what decides the evaluations (scene, seed, precision, method, …). With ``resume`` the file is
    read first; a line torn by the kill is dropped. Raises ``ValueError`` if the file belongs to something else.
    """

    def __init__(self, file: Path | None, identity: dict[str, object], resume: bool = False) -> None:
        self.file = file
        self._seen: dict[tuple[int, bytes], tuple[Point, float]] = {}
        self._measured: dict[str, Any] = {}
        self._head = {"format": _FORMAT, **identity}
        self._begun = bool(file is not None and resume and file.exists() and self._read())

    def __len__(self) -> int:
        return len(self._seen)

    def get(self, z: np.ndarray, horizon: int = 0) -> tuple[Point, float] | None:
        """The evaluation at exactly ``z`` over ``horizon`` frames and the seconds it took, if it was made before."""
        return self._seen.get((horizon, z.tobytes()))

    def add(self, point: Point, seconds: float) -> None:
        """Keep an evaluation; on disk before this returns."""
        self._keep(point, seconds)
        record: dict[str, object] = {
            "z": point.z.tolist(),
            "loss": _number(point.loss),
            "gradient": [_number(g) for g in point.gradient.tolist()],
            "bad": point.bad,
            "seconds": round(seconds, 3),
        }
        if point.horizon:
            record["horizon"] = point.horizon
        self._write(record)

    def measured(self, what: str, measure: Callable[[], Any]) -> Any:
        """What ``measure`` found (plain values), in this run or the one that is resumed; ``what`` tells it apart."""
        if what not in self._measured:
            self._measured[what] = measure()
            self._write({"what": what, "measured": self._measured[what]})
        return self._measured[what]

    def _keep(self, point: Point, seconds: float) -> None:
        self._seen[point.horizon, point.z.tobytes()] = (point, seconds)

    def _write(self, record: dict[str, object]) -> None:
        if self.file is None:
            return
        if not self._begun:  # an older file makes room only now that there is something to put in its place
            with writing(self.file):
                if self.file.exists():
                    os.replace(self.file, self.file.with_name(BEFORE))
            write_atomic(self.file, _line(self._head))
            self._begun = True
        with writing(self.file), open(self.file, "ab") as stream:
            stream.write(_line(record))
            stream.flush()
            os.fsync(stream.fileno())

    def _read(self) -> bool:
        """Fill from the file; ``False`` if there is nothing in it. (Its first line is there whole or not at all.)"""
        assert self.file is not None
        data = self.file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not data:
            return False
        try:
            if not lines:
                raise TypeError("it has no complete line")
            found, *records = [json.loads(line) for line in lines]
            changed = [k for k in self._head if found.get(k) != self._head[k]]
            if changed:
                what = ", ".join(f"{k} {_short(found.get(k))}, now {_short(self._head[k])}" for k in changed)
                raise ValueError(
                    f"{self.file}: these evaluations are of another problem or method ({what}); choose another "
                    "folder or do not resume"
                )
            for r in records:
                if "what" in r:
                    self._measured[r["what"]] = r["measured"]
                    continue
                gradient, z = np.array([_back(g) for g in r["gradient"]], dtype=np.float64), np.array(r["z"], float)
                point = Point(z, _back(r["loss"]), gradient, r["bad"], int(r.get("horizon", 0)))
                self._keep(point, float(r["seconds"]))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self.file}: not a journal of evaluations ({error}); choose another folder, or move it"
            ) from None
        if len(whole) < len(data):
            with open(self.file, "r+b") as stream:
                stream.truncate(len(whole))
        return True


def _line(record: dict[str, object]) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _back(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 16 else text[:12] + "…"
