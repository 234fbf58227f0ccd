"""The house rules that import-linter cannot see (its contracts are in ``.importlinter``)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import taichi_sim

PACKAGE = Path(taichi_sim.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

#: Never loaded by ``import taichi_sim``, which has to be instant.
HEAVY = "numpy scipy taichi trimesh matplotlib PIL imageio imageio_ffmpeg rich msgspec checkpoint_schedules".split()


def inside(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def imports(tree: ast.AST) -> set[str]:
    """Top-level packages imported anywhere in a file, functions included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


def differentiates(tree: ast.AST) -> bool:
    """Whether a file touches ``ti.ad`` or what is in it."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return bool(names & {"ad", "Tape", "grad_replaced", "grad_for", "no_grad"})


def test_the_package_is_found():
    assert {"runtime.py", "simulation/engine.py", "core/array.py", "timeline/timeline.py"} <= set(map(inside, FILES))


def test_only_runtime_imports_taichi():
    assert [inside(file) for file in FILES if "taichi" in imports(ast.parse(file.read_text("utf-8")))] == ["runtime.py"]


def test_only_timeline_and_core_use_taichis_differentiation():
    users = {inside(file).split("/")[0] for file in FILES if differentiates(ast.parse(file.read_text("utf-8")))}
    assert "timeline" in users and users <= {"timeline", "core"}


@pytest.mark.parametrize(
    "source",
    [
        "ti.ad.Tape(loss)",
        "from taichi_sim.runtime import ti as x\nx.ad.grad_for(f)",
        "from somewhere import Tape",
        "@grad_replaced\ndef f(): pass",
    ],
)
def test_differentiation_is_recognised(source):
    assert differentiates(ast.parse(source)) and not differentiates(ast.parse("kernel.grad(x); x.grad"))


def test_annotations_are_not_strings():
    """``from __future__ import annotations`` breaks Taichi kernels."""
    assert [inside(file) for file in FILES if "__future__" in imports(ast.parse(file.read_text("utf-8")))] == []


def test_no_public_name_hides_a_subpackage():
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {"simulation", "optimization", "scene"} <= rooms and not rooms & set(taichi_sim.__all__)


def test_public_names_are_there():
    assert all(getattr(taichi_sim, name) is not None for name in taichi_sim.__all__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        taichi_sim.nothing_of_the_kind  # noqa: B018


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_is_light():
    assert loaded_by("import taichi_sim") & set(HEAVY) == set()


def test_scenes_are_pure_data():
    """A scene can be built and written without starting, or even loading, Taichi."""
    loaded = loaded_by("import taichi_sim as ts; ts.Domain(upper=[1, 1], cells=8); ts.Scene")
    assert "msgspec" in loaded
    assert loaded & {"taichi", "trimesh", "matplotlib", "imageio", "imageio_ffmpeg", "PIL", "rich", "scipy"} == set()


def test_no_two_test_files_of_one_name():
    """Pytest imports them by their name alone."""
    names = [file.name for file in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
