"""Every value of a shipped material says where it is from, and lies in the range its law allows."""

import re
from pathlib import Path

import pytest

from taichi_sim.laws.law import laws

try:
    import tomllib
except ModuleNotFoundError:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

ROOT = Path(__file__).parents[2] / "materials"
FILES = sorted(ROOT.rglob("*.toml"))

#: A source names a year, a handbook, a data sheet, or says that the value is a numerical choice.
SOURCE = re.compile(r"\b(1[89]|20)\d\d\b|Handbook|technical (bulletin|data sheet)|MatWeb|^numerical")


def test_there_are_enough_of_every_family():
    assert len(FILES) >= 6
    assert {file.parent.name for file in FILES} >= {"elastomers", "gels", "fluids", "soils"}
    names = [file.stem for file in FILES]
    assert len(set(names)) == len(names), "a scene names a material without its family"
    assert all(file.parent.parent == ROOT and file.stem.isidentifier() for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_value_is_cited_and_allowed(file):
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    law = laws.get(table.pop("law"))
    assert len(table.pop("doc")) > 20
    declared = {p.name: p for p in law.parameters}
    required = {name for name, p in declared.items() if p.default is None} | {"density"}
    assert required <= set(table) <= set(declared) | {"density"}
    for name, entry in table.items():
        assert set(entry) == {"value", "source"}, name
        assert isinstance(entry["value"], float), f"{name}: write a float"
        assert len(entry["source"]) > 30 and SOURCE.search(entry["source"]), f"{name}: {entry['source']!r} is no source"
        if name == "density":
            assert 1.0 < entry["value"] < 25e3
        else:
            assert declared[name].check(entry["value"]) is None, name


@pytest.mark.parametrize("source", ["", "measured", "common knowledge, as everyone can look up somewhere"])
def test_an_empty_citation_is_refused(source):
    assert not SOURCE.search(source)
