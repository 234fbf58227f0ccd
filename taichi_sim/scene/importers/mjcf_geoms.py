"""Geoms of MJCF as shapes, and the mass of bodies made of them."""

from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import SceneError, unknown
from taichi_sim.scene.importers.mjcf_model import Model
from taichi_sim.scene.importers.robot import Geometry, Pose
from taichi_sim.scene.importers.shapes import quaternion_matrix, towards, weigh
from taichi_sim.scene.importers.xml import Element, Note
from taichi_sim.scene.inertia import MassProperties
from taichi_sim.scene.mesh import read_mesh
from taichi_sim.scene.pose import rotation_vector

#: Numbers in ``size`` that a primitive needs: on its own, and with ``fromto``.
_SIZES = {"sphere": (1, 0), "capsule": (2, 1), "cylinder": (2, 1), "box": (3, 1), "ellipsoid": (3, 1), "plane": (0, 0)}
_KINDS = (*_SIZES, "mesh", "hfield", "sdf")
_MIDDLE = [0.0, 0.0, 0.0]


class Geoms:
    """Reads geoms, and the assets they are made of."""

    def __init__(self, model: Model, notes: list[Note]) -> None:
        self.model, self.notes = model, notes
        self.meshes: dict[str, Element] = {}
        self.colors: dict[str, tuple[float, ...]] = {}
        compiler, root = model.compiler, model.root
        folder = compiler.string("meshdir", compiler.string("assetdir", ""))
        compiler.skip("assetdir", "texturedir")
        self.folder = root.file.parent / folder
        self.strip = compiler.flag("strippath", False)
        for assets in root.all("asset"):
            for element in assets.all("mesh"):
                mesh = model.defaults(element, None)
                name = mesh.string("name", Path(mesh.string("file", "")).stem)
                if not name:
                    raise mesh.wrong("needs a name or a file")
                self.meshes[name] = mesh
            for element in assets.all("material"):
                material = model.defaults(element, None)
                if material.has("rgba"):
                    rgba = material.numbers("rgba", 4)
                    self.colors[material.string("name", "")] = tuple(np.clip(rgba[:3], 0.0, 1.0).tolist())
                material.skip("name")

    def geometry(self, geom: Element) -> Geometry | None:
        """The shape of a geom with its defaults, in the frame around it; ``None`` (and a note) for what is left out."""
        kind = geom.choice("type", _KINDS, "sphere")
        if kind in ("hfield", "sdf"):
            self.notes.append(geom.note(f'geom of type "{kind}"', "left out"))
            return None
        if kind != "mesh" and geom.has("mesh"):
            raise geom.wrong(f'fitting a {kind} to a mesh is not understood; write type="mesh", or the size')
        pose, values = self.model.frame(geom), {}
        if kind == "mesh":
            table, values = self.mesh(geom)
        else:
            table, pose = self.primitive(geom, kind, pose)
        rgba = geom.numbers("rgba", 4, None)
        color = (
            self.colors.get(geom.string("material", "")) if rgba is None else tuple(np.clip(rgba[:3], 0, 1).tolist())
        )
        friction = geom.numbers("friction", (1, 2, 3), (1.0,))
        if friction[0] < 0:
            raise geom.wrong("must be ≥ 0", "friction")
        return Geometry(
            table,
            pose,
            geom.string("name", ""),
            float(friction[0]),
            color,
            int(geom.number("contype", 1)),
            int(geom.number("conaffinity", 1)),
            **values,
        )

    def primitive(self, geom: Element, kind: str, pose: Pose) -> tuple[dict[str, Any], Pose]:
        size = geom.numbers("size", None, ())
        ends = geom.numbers("fromto", 6, None)
        if ends is not None and not _SIZES[kind][1]:
            raise geom.wrong(f"a {kind} has no fromto; write pos and size", "fromto")
        needed = _SIZES[kind][ends is not None]
        if len(size) < needed:
            raise geom.wrong(f"a {kind} needs {needed} number{'s' if needed > 1 else ''} in size", "size")
        if not np.all(size[:needed] > 0):
            raise geom.wrong("must be > 0 m", "size")
        if ends is not None:
            along = ends[:3] - ends[3:]
            half = float(np.linalg.norm(along)) / 2
            if half < 1e-12:
                raise geom.wrong("the two ends are the same point", "fromto")
            pose = Pose(towards(along), (ends[:3] + ends[3:]) / 2)
            size = np.array([size[0], half]) if kind in ("capsule", "cylinder") else np.array([size[0], size[0], half])
        if kind == "plane":
            return {"kind": "plane", "point": _MIDDLE, "normal": [0.0, 0.0, 1.0]}, pose
        if kind == "sphere":
            return {"kind": "sphere", "center": _MIDDLE, "radius": float(size[0])}, pose
        if kind == "box":
            return {"kind": "box", "center": _MIDDLE, "size": (2 * size[:3]).tolist()}, pose
        if kind == "ellipsoid":
            return {"kind": "ellipsoid", "center": _MIDDLE, "radii": size[:3].tolist()}, pose
        end = [0.0, 0.0, float(size[1])]
        return {"kind": kind, "start": [0.0, 0.0, -end[2]], "end": end, "radius": float(size[0])}, pose

    def mesh(self, geom: Element) -> tuple[dict[str, Any], dict[str, Any]]:
        """Table of a mesh geom, and its vertices and faces if the file holds them."""
        name = geom.string("mesh")
        if name not in self.meshes:
            raise geom.wrong(unknown("mesh", name, self.meshes), "mesh")
        asset = self.meshes[name]
        scale = asset.numbers("scale", 3, (1, 1, 1))
        if not np.all(scale):
            raise asset.wrong("must not be zero", "scale")
        table: dict[str, Any] = {"kind": "mesh"}
        if np.any(scale != 1):
            table["stretch"] = scale.tolist()
        # moved so that its reference point lies at the origin, turned back by the reference orientation, then scaled
        back = quaternion_matrix(asset.numbers("refquat", 4, (1, 0, 0, 0))).T
        if np.any(back != np.eye(3)) and not np.all(scale == scale[0]):
            raise asset.wrong("refquat with a scale that differs by axis is not understood; turn the geom instead")
        shift = -scale * (back @ asset.numbers("refpos", 3, (0, 0, 0)))
        if np.any(shift) or np.any(back != np.eye(3)):
            table |= {"position": shift.tolist(), "rotation": rotation_vector(back).tolist()}
        file = asset.string("file", None)
        if file is None:
            return table, self.inline(asset)
        path = self.folder / (Path(file).name if self.strip else file)
        if not path.is_file():
            raise asset.wrong(f"no such mesh file ({path}); put it there, or correct the name or meshdir", "file")
        return {**table, "file": str(path.resolve())}, {}

    def inline(self, asset: Element) -> dict[str, Any]:
        numbers = asset.numbers("vertex", None, None)
        if numbers is None:
            raise asset.wrong("has neither a file nor vertices; built-in meshes are not understood")
        if len(numbers) % 3 or len(numbers) < 12:
            raise asset.wrong("must be the coordinates of at least four points", "vertex")
        vertices, faces = numbers.reshape(-1, 3), asset.numbers("face", None, None)
        if faces is None:
            return {"vertices": vertices, "faces": _hull(asset, vertices)}
        if len(faces) % 3 or np.any(faces < 0) or np.any(faces >= len(vertices)):
            raise asset.wrong("must be triples of numbers of vertices, from 0", "face")
        return {"vertices": vertices, "faces": faces.reshape(-1, 3).astype(np.int64)}

    def weigh(self, geom: Element, geometry: Geometry) -> MassProperties:
        """Mass, centre and inertia of a geom, in the frame around it: of its mass, or else its density."""
        if geom.flag("shellinertia", False):
            raise geom.wrong("a hollow geom is not understood; give the body an <inertial>", "shellinertia")
        density, mass = geom.number("density", 1000.0), geom.number("mass", None)
        for name, value in (("density", density), ("mass", mass)):
            if value is not None and value < 0:
                raise geom.wrong("must be ≥ 0", name)
        if geometry.shape["kind"] == "mesh":
            return self._weigh_mesh(geom, geometry, None if mass is not None else density, mass)
        return weigh(geometry, None if mass is not None else density, mass)

    def _weigh_mesh(
        self, geom: Element, geometry: Geometry, density: float | None, mass: float | None
    ) -> MassProperties:
        asset = self.meshes[geom.string("mesh")]
        way = asset.choice("inertia", ("convex", "exact", "legacy", "shell"), "exact")
        if way == "shell":
            raise asset.wrong("a hollow mesh is not understood; give the body an <inertial>", "inertia")
        try:
            if way != "convex":
                return weigh(geometry, density, mass)
        except ValueError as error:
            reason = error.problems[0].message if isinstance(error, SceneError) else str(error)
            reason = reason.split(";")[0]
            self.notes.append(
                geom.note(f"mesh {geom.string('mesh')!r} as a solid ({reason})", "its convex hull weighs")
            )
        vertices = geometry.vertices if geometry.vertices is not None else read_mesh(Path(geometry.shape["file"]))[0]
        table = {key: item for key, item in geometry.shape.items() if key != "file"}
        return weigh(Geometry(table, geometry.pose, vertices=vertices, faces=_hull(asset, vertices)), density, mass)


def _hull(asset: Element, vertices: np.ndarray) -> np.ndarray:
    """Triangles (f, 3) of the convex hull of points (v, 3), outward; an error of the asset if they are flat."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        found = ConvexHull(vertices)
    except QhullError:
        raise asset.wrong("the vertices of the mesh lie in a plane: they enclose nothing") from None
    faces = found.simplices.astype(np.int64)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    inward = np.einsum("fi,fi->f", np.cross(b - a, c - a), found.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return faces
