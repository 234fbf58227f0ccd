"""What the package imports is what it declares, and the other way round."""

import ast
import re
import sys

from recipes import ROOT
from test_layers import FILES, imports

from taichi_sim.scene.toml import parse

#: Distributions whose package has another name.
NAMES = {"pillow": "PIL"}


def declared(requirements: list[str]) -> set[str]:
    """Packages that requirements bring, as they are imported."""
    names = {re.split(r"[\[<>=!;~ ]", requirement, maxsplit=1)[0] for requirement in requirements}
    return {NAMES.get(name, name.replace("-", "_")) for name in names}


def test_everything_imported_is_declared_and_everything_declared_is_imported():
    project = parse((ROOT / "pyproject.toml").read_bytes(), "pyproject.toml")["project"]
    found = set().union(*(imports(ast.parse(file.read_text("utf-8"))) for file in FILES))
    standard = {*sys.stdlib_module_names, "tomllib"}  # which Python 3.10 does not have yet
    assert found - standard - {"taichi_sim"} == declared(project["dependencies"])
