"""Registries filled from a package, and the ranges of parameters."""

import sys
from dataclasses import dataclass

import pytest

from taichi_sim.core.registry import Parameter, Registry


@dataclass(frozen=True)
class Thing:
    name: str
    doc: str = ""
    parameters: tuple[Parameter, ...] = ()


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "kinds_for_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("registry = None\nloads = []\n")
    for name in ("beta", "alpha"):
        (folder / f"{name}.py").write_text(
            "import kinds_for_test as package\n"
            f"package.loads.append({name!r})\n"
            f"package.registry.add(package.Thing({name!r}))\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    import kinds_for_test  # type: ignore[import-not-found]

    kinds_for_test.Thing = Thing
    kinds_for_test.registry = Registry("thing", "kinds_for_test")
    yield kinds_for_test
    for name in [name for name in sys.modules if name.startswith("kinds_for_test")]:
        del sys.modules[name]


def test_filled_from_its_package_once_and_when_asked(package):
    assert package.loads == []
    assert package.registry.names() == ["alpha", "beta"]
    assert [kind.name for kind in package.registry] == ["alpha", "beta"]
    assert package.registry.get("beta").name == "beta"
    assert sorted(package.loads) == ["alpha", "beta"]


def test_typos_and_strangers_are_named(package):
    with pytest.raises(ValueError, match=r"unknown thing 'alpa'; did you mean 'alpha'\?"):
        package.registry.get("alpa")
    with pytest.raises(ValueError, match=r"unknown thing 'zzz'; allowed: alpha, beta"):
        package.registry.get("zzz")


def test_a_name_is_taken_once(package):
    package.registry.names()
    with pytest.raises(ValueError, match=r"thing 'alpha' is registered twice"):
        package.registry.add(Thing("alpha"))


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "text"),
    [
        ({}, [-1e9, 0.0], [float("nan")], "finite"),
        ({"low": 0.0}, [0.0, 1.0], [-1e-300, float("nan")], ">= 0 Pa"),
        ({"low": 0.0, "low_open": True}, [1e-300], [0.0, -1.0], "> 0 Pa"),
        ({"high": 0.5, "high_open": True}, [0.4999], [0.5], "< 0.5 Pa"),
        ({"low": -1.0, "high": 0.5}, [-1.0, 0.5], [-1.1, 0.51], ">= -1 and <= 0.5 Pa"),
    ],
)
def test_ranges(limits, inside, outside, text):
    parameter = Parameter("E", "Pa", None, "", **limits)
    assert parameter.range_text() == text
    assert all(parameter.check(value) is None for value in inside)
    assert all(parameter.check(value) == f"must be {text}" for value in outside)
