"""The user's own objective: a Python function of what is seen at a frame, returning the value and its derivative.

``fn(frame) -> (value, {"position": …, "velocity": …, "sensors": {"NAME": …}})`` or an ``Evaluation``; what is left out
is zero. The arrays of the frame are read-only. A Taichi kernel becomes such a function by
``taichi_sim.objectives.user_kernel.taichi_kernel``.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import (
    INPUTS,
    Evaluation,
    Frame,
    ObjectiveKind,
    Values,
    checked,
    objectives,
)
from taichi_sim.objectives.user_code import user_code

_WHAT = "objective 'function'"


@lru_cache(maxsize=64)
def _module_from_file(path: Path, changed: int) -> ModuleType:
    name = f"taichi_sim_user_{path.stem}_{changed}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{_WHAT}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with user_code(_WHAT):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_by_name(place: str, name: str) -> ModuleType:
    with user_code(_WHAT):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
                raise  # the module is there, but something it imports is not
            missing = error.name
    raise ValueError(f"{_WHAT}: there is no module {missing!r}; give 'file.py:{name}' for a file beside the scene")


def _find(text: str, folder: Path) -> Callable[[Frame], Any]:
    place, colon, name = text.rpartition(":")
    if not (place and colon and name):
        raise ValueError(f"{_WHAT}: function = {text!r} must read 'package.module:name' or 'file.py:name'")
    if place.endswith(".py"):
        path = (folder / place).resolve()
        if not path.is_file():
            raise ValueError(f"{_WHAT}: there is no file {path}")
        module = _module_from_file(path, path.stat().st_mtime_ns)
    else:
        module = _module_by_name(place, name)
    if not hasattr(module, name):
        functions = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise ValueError(f"{_WHAT}: {place} has {unknown('function', name, functions)}")
    return getattr(module, name)


def _load(p: Values, folder: Path) -> Values:
    function = p["function"]
    if isinstance(function, str):
        function = _find(function, folder)
    if not callable(function):
        raise ValueError(f"{_WHAT}: function must be callable or 'package.module:name', got {p['function']!r}")
    return {**p, "function": function}


def _locked(frame: Frame) -> Frame:
    views: dict[str, Any] = {}
    for f in fields(frame):
        value = getattr(frame, f.name)
        if isinstance(value, np.ndarray):
            view = value.view()
            view.setflags(write=False)
            views[f.name] = view
    sensors = {name: read.view() for name, read in frame.sensors.items()}
    for read in sensors.values():
        read.setflags(write=False)
    views["sensors"] = sensors
    return replace(frame, **views)


def _rule(p: Values, frame: Frame) -> Evaluation:
    function = p["function"]
    what = f"{_WHAT}: {getattr(function, '__qualname__', repr(function))}"
    with user_code(what):
        result = function(_locked(frame))
    if not isinstance(result, Evaluation):
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping)):
            raise ValueError(
                f"{what} must return (value, {{'position': derivative, …}}), got a {type(result).__name__}"
            )
        value, derivatives = result
        for name in derivatives:
            if name not in (*INPUTS, "sensors"):
                known = (*INPUTS, "sensors")
                raise ValueError(f"{what} returned a derivative by an {unknown('name', str(name), known)}")
        if not isinstance(derivatives.get("sensors", {}), Mapping):
            raise ValueError(f"{what}: the derivative by sensors must be {{'SENSOR': derivative, …}}")
        result = Evaluation(value, **derivatives)
    return checked(what, replace(result, parameters={}), frame)


def example_function(frame: Frame) -> tuple[float, dict[str, Any]]:
    """Something smooth of everything a frame holds, to test with."""
    value = (
        np.sum(frame.position**3) + np.sum(np.sin(frame.velocity)) + np.sum(frame.rest**2) + np.sum(frame.mass**2)
    ) + np.sum(frame.activation**3)
    value += sum(float(np.sum(read**3)) for read in frame.sensors.values())
    return float(value), {
        "sensors": {name: 3.0 * read**2 for name, read in frame.sensors.items()},
        "position": 3.0 * frame.position**2,
        "velocity": np.cos(frame.velocity),
        "rest": 2.0 * frame.rest,
        "mass": 2.0 * frame.mass,
        "activation": 3.0 * frame.activation**2,
    }


objectives.add(
    ObjectiveKind(
        name="function",
        doc="your own Python function of a frame, returning the value and its derivative",
        parameters=(
            Parameter(
                "function",
                "",
                None,
                "callable, 'package.module:name' or 'file.py:name': fn(frame) -> (value, {'position': derivative, …})",
                kind="text",
            ),
        ),
        rule=_rule,
        example=lambda dim, rng: {"function": example_function},
        load=_load,
        senses=lambda p: "*",
        alone=True,
    )
)
