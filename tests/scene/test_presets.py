"""Material presets: cited, within range, found by name; what a material resolves to."""

import numpy as np
import pytest
from scene_tables import bent, problems, walker

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Material, Override, Scene, presets
from taichi_sim.scene.presets import resolve_material


@pytest.mark.parametrize("name", presets.names())
def test_shipped_presets_are_complete(name):
    preset = presets.load(name)
    assert preset.doc and preset.family
    assert preset.values["density"] > 0.0
    assert all(len(source) > 10 for source in preset.sources.values())
    assert set(preset.sources) == set(preset.values)
    scene = walker()
    scene.materials["stuff"] = Material(preset=name)
    scene.bodies["cargo"].material = "stuff"
    scene.check()
    resolved = scene.resolved().materials["stuff"]
    assert resolved.law == preset.law and resolved.density == preset.values["density"]


def test_a_typo_names_the_nearest_preset():
    name = presets.names()[0]
    found = problems({"materials.jelly": {"preset": name[:-1] + "_"}})
    assert f"did you mean {name!r}?" in found["materials.jelly.preset"]
    assert list(problems({"materials.jelly": {"preset": 3}})) == ["materials.jelly.preset"]


def test_presets_can_be_overridden():
    name = next(n for n in presets.names() if "youngs_modulus" in presets.load(n).values)
    scene = Scene.from_dict(bent({"materials.jelly": {"preset": name, "youngs_modulus": 123.0, "density": 7.0}}))
    found = resolve_material(scene, "jelly")
    assert found.parameters["youngs_modulus"] == 123.0 and found.density == 7.0
    assert found.parameters["poissons_ratio"] == presets.load(name).values["poissons_ratio"]


def test_a_body_s_own_version():
    scene = walker()
    shared, own = resolve_material(scene, "jelly"), resolve_material(scene, scene.bodies["cargo"])
    assert shared.parameters["youngs_modulus"] == 2e4 and shared.overridden == frozenset()
    assert own.parameters == {**shared.parameters, "youngs_modulus": 3e4}
    assert own.shared == "jelly" and own.overridden == {"youngs_modulus"}
    heavy = resolve_material(scene, Override(base="jelly", density=np.full(3, 5.0)))
    assert heavy.density.tolist() == [5.0] * 3 and heavy.overridden == {"density"}
    with pytest.raises(ValueError, match="did you mean 'jelly'"):
        resolve_material(scene, "jely")


LAW = "law = 'neo_hookean'\n"
DENSITY = "density = {value = 1.0, source = 'x'}\n"
MODULUS = "youngs_modulus = {value = 1.0, source = 'x'}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LAW + "density = 1000.0\n" + MODULUS, "density = 1000.0: must be {value = NUMBER, source"),
        (LAW + DENSITY.replace("'x'", "''") + MODULUS, "source"),
        (LAW + DENSITY, "youngs_modulus: is missing"),
        (LAW + MODULUS, "density: is missing"),
        (LAW + DENSITY + MODULUS.replace("1.0", "-1.0"), "youngs_modulus = -1.0: must be > 0 Pa"),
        (LAW + DENSITY.replace("1.0", "0.0") + MODULUS, "density = 0.0: must be > 0 kg/m³"),
        (LAW + DENSITY + MODULUS.replace("1.0", "'1'"), "must be a number"),
        (LAW + DENSITY + MODULUS.replace("lus", "ls"), "did you mean 'youngs_modulus'?"),
    ],
)
def test_presets_without_a_source_are_refused(tmp_path, text, words):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(SceneError) as caught:
        presets.read(file)
    assert words in str(caught.value) and "bad.toml" in str(caught.value)
