"""Scene files: found by path or name, refused with file and line."""

import pytest
from scene_tables import WALKER

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Scene
from taichi_sim.scene.toml import dumps


@pytest.fixture
def written(tmp_path):
    """Writes a scene file of the given text and returns its path."""

    def write(text: "str | bytes", name: str = "scene.toml"):
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dim = 2\ndim = 3\n", "line 2: 'dim' is given twice"),
        ("[bodies.a]\n[bodies.a]\n", "line 2: 'bodies.a' is given twice"),
        ("[materials.x]\ndensity = 1\ndensity = 2\n", "line 3: 'density' is given twice"),
        ("dim = 2\nduration = \n", "line 2: is not TOML"),
        ("dim = 2\n[domain\n", "line 2: is not TOML"),
        ("name = 'open\n", "line 1: is not TOML"),
        ("just words\n", "line 1: is not TOML"),
        ("dim = 1e400000000000x\n", "line 1: is not TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("name = 'x'\n".encode("utf-16"), "is not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\x00", "is not UTF-8"),
        ("", "format: is missing"),
    ],
)
def test_broken_files(written, text, words):
    with pytest.raises(SceneError, match=r"scene\.toml: ") as caught:
        Scene.load(written(text))
    assert words in str(caught.value)
    if "is missing" not in words:
        assert len(caught.value.problems) == 1 and "\n" not in str(caught.value)


def test_every_line_names_the_file(written):
    text = dumps(WALKER).replace("1000.0", "-1.0").replace('"jelly"', '"jely"')
    with pytest.raises(SceneError) as caught:
        Scene.load(written(text))
    lines = str(caught.value).splitlines()
    assert len(lines) == 4  # two densities, two materials
    assert all("scene.toml: " in line for line in lines)


def test_integer_digits_without_end(written):
    with pytest.raises(SceneError, match=r"scene\.toml"):
        Scene.load(written("dim = " + "9" * 10_000))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crawlr", "did you mean the shipped scene 'crawler'?"),
        ("crawlr.toml", "did you mean the shipped scene 'crawler'?"),
        ("nothing_like_it_at_all", "shipped scenes: a"),
        ("", "is a folder"),
        (".", "is a folder"),
    ],
)
def test_scenes_that_are_not_there(name, words):
    with pytest.raises(SceneError) as caught:
        Scene.load(name)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_typo_in_a_file_name(written):
    file = written(dumps(WALKER), "walker.toml")
    with pytest.raises(SceneError, match=r"did you mean '.*walker\.toml'\?"):
        Scene.load(file.with_name("waker.toml"))


def test_loading_with_a_byte_order_mark_and_windows_line_ends(written):
    text = "\ufeff" + dumps(WALKER).replace("\n", "\r\n")
    assert Scene.load(written(text)) == Scene.from_dict(WALKER)


def test_title_and_source(written):
    scene = Scene.load(written(dumps(WALKER), "my_walker.toml"))
    assert scene.title == "my_walker" and scene.name is None
    assert scene.source and scene.source.endswith("my_walker.toml")
    assert scene == Scene.from_dict(WALKER)
