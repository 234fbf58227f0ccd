"""The headless renderer: a :class:`~taichi_sim.viz.picture.Picture` in, an image out; no window, no Vulkan."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from taichi_sim import runtime
from taichi_sim.viz import caption, flat, raster, shade
from taichi_sim.viz.camera import Camera2D, Camera3D
from taichi_sim.viz.picture import Picture, Resolved

SHADOW = 1024  # texels along a side of the shadow map
SUN = np.array([0.12, 0.42, -0.90])  # the way the light travels
#: points spread evenly in the unit disc (a sunflower), for soft shadows
TAPS = np.array(
    [[math.sqrt((k + 0.5) / 32) * turn(k * 2.39996323) for turn in (math.cos, math.sin)] for k in range(32)], np.float32
)
#: for ambient occlusion: sixteen turns of a spiral of points
SPIRAL = np.array(
    [
        [
            [(s + 0.5) / 14 * turn(s * 2.39996323 + (7 * r % 16) * math.pi / 8) for turn in (math.cos, math.sin)]
            for s in range(14)
        ]
        for r in range(16)
    ],
    np.float32,
)


class Renderer:
    """Draws pictures of one size.

    ``samples`` is the number of samples along each side of a pixel (2: smooth edges, 1: faster). Works in whatever
    Taichi runtime is there (f32 or f64, cpu or cuda) and starts one if there is none; it owns no memory of it, so it
    may outlive a restart. Equal pictures give equal bytes. Raises ``ValueError`` for a size or picture it cannot draw.
    """

    def __init__(self, width: int = 640, height: int = 480, samples: int = 2) -> None:
        for name, value, low, high in (
            ("width", width, 16, 8192),
            ("height", height, 16, 8192),
            ("samples", samples, 1, 4),
        ):
            if not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise ValueError(f"renderer: {name} must be a whole number between {low} and {high}, got {value!r}")
        self.width, self.height, self.samples = int(width), int(height), int(samples)
        self._buffers: dict[str, np.ndarray] = {}
        self._room_key: bytes | None = None

    def close(self) -> None:
        """Let go of the image buffers; the next :meth:`render` makes new ones."""
        self._buffers.clear()
        self._room_key = None

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def render(self, picture: Picture) -> np.ndarray:
        """The picture as (height, width, 3) uint8, first row on top."""
        resolved = picture.checked()
        finite = np.isfinite(resolved.points).all(axis=1)
        if not finite.all():
            resolved = resolved._replace(
                points=resolved.points[finite], colors=resolved.colors[finite], radius=resolved.radius[finite]
            )
        with runtime.launch_lock:
            if runtime.impl.get_runtime().prog is None:
                runtime.start()
            cell = nice(0.13 * float(np.max(resolved.upper - resolved.lower)))
            frame = (self._flat if picture.dim == 2 else self._solid)(picture, resolved, cell)
        return caption.write(
            frame, picture.caption, picture.legend and picture.activation is not None, f"grid {cell:g} m"
        )

    # -- shared -------------------------------------------------------------------------------------------------
    def _buffer(self, name: str, shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
        """A reused array; its content is whatever was there."""
        have = self._buffers.get(name)
        if have is None or have.shape != shape or have.dtype != dtype:
            have = self._buffers[name] = np.zeros(shape, dtype)
        return have

    # -- 3-D ----------------------------------------------------------------------------------------------------
    def _solid(self, picture: Picture, resolved: Resolved, cell: float) -> np.ndarray:
        height, width, s = self.height, self.width, self.samples
        rows, cols = height * s, width * s
        size = float(np.linalg.norm(resolved.upper - resolved.lower)) or 1.0
        camera = camera_of(picture, width, height, resolved)
        assert isinstance(camera, Camera3D)
        cam = _camera_numbers(camera, rows, cols, size)
        points, radius, colors = _with_balls(picture, resolved)
        corners, normals, face_colors = _triangles([*picture.obstacles, *picture.meshes])
        sun = _sun_numbers(points, radius, corners)
        if not len(points):  # kernels want at least one: a ball far behind the camera
            behind = np.asarray(camera.position) - 1e6 * size * camera.basis()[2]
            points, radius, colors = (
                behind[None].astype(np.float32),
                np.ones(1, np.float32),
                np.zeros((1, 3), np.float32),
            )
        all_colors = np.concatenate([colors, face_colors]) ** np.float32(2.2)
        floor = float(resolved.lower[2]) if picture.floor is None else float(picture.floor)
        far = _far(cam, size) if picture.floor_visible else 0.0

        zbuf = self._buffer("z", (rows, cols), np.int64)
        zbuf.fill(raster.EMPTY)
        shadow = self._buffer("shadow", (SHADOW, SHADOW), np.int32)
        shadow.fill(raster.DARK)
        raster.draw_spheres(points, radius, cam, zbuf)
        raster.shade_spheres(points, radius, sun, shadow)
        if len(corners):
            raster.draw_triangles(corners, len(points), cam, zbuf)
            raster.shade_triangles(corners, sun, shadow)
        else:
            corners = normals = np.zeros((1, 3, 3), np.float32)
        return self._light(picture, resolved, cam, sun, points, radius, corners, normals, all_colors, floor, far, cell)

    def _light(
        self, picture, resolved, cam, sun, points, radius, corners, normals, colors, floor, far, cell
    ) -> np.ndarray:  # fmt: skip
        height, width, s = self.height, self.width, self.samples
        rows, cols = height * s, width * s
        zbuf, shadow = self._buffers["z"], self._buffers["shadow"]
        depth, ids = self._buffer("depth", (rows, cols)), self._buffer("ids", (rows, cols), np.int32)
        normal, spare = self._buffer("normal", (rows, cols, 3)), self._buffer("spare", (rows, cols, 3))
        raster.resolve(zbuf, points, radius, corners, normals, cam, floor, far, depth, normal, ids)
        if picture.smooth > 0 and len(picture.points):
            raster.blend_normals(depth, ids, normal, radius, cam, 0, float(min(picture.smooth, 1.0)), spare)
            raster.blend_normals(depth, ids, spare, radius, cam, 1, float(min(picture.smooth, 1.0)), normal)
        ao, where = self._buffer("ao", (height, width)), self._buffer("where", (height, width))
        ao2 = self._buffer("ao2", (height, width))
        size = float(np.linalg.norm(resolved.upper - resolved.lower)) or 1.0
        where[...] = depth[::s, ::s]
        whole = cam.copy()
        whole[12:15] /= s
        shade.occlusion(where, ids, normal, whole, 0.09 * size, SPIRAL, ao)
        shade.blend_occlusion(ao, where, 0, ao2)
        shade.blend_occlusion(ao2, where, 1, ao)
        out = np.empty((height, width, 3), np.uint8)
        walls = picture.lower is not None and picture.upper is not None
        ground = np.array([cell, *resolved.lower[:2], *resolved.upper[:2], 0.012 * cell, float(walls), 0], np.float32)
        shade.light_up(depth, ids, normal, colors, ao, where, shadow, TAPS, cam, sun, ground, far, out)
        return out

    # -- 2-D ----------------------------------------------------------------------------------------------------
    def _flat(self, picture: Picture, resolved: Resolved, cell: float) -> np.ndarray:
        height, width, s = self.height, self.width, self.samples
        rows, cols = height * s, width * s
        camera = camera_of(picture, width, height, resolved)
        assert isinstance(camera, Camera2D)
        view = np.array([*camera.center, rows / camera.height, cols / 2, rows / 2, 0, 0, 0], np.float32)
        room = self._room(picture, resolved, view, cell)
        zbuf = self._buffer("z", (rows, cols), np.int64)
        zbuf.fill(raster.EMPTY)
        reach = resolved.radius * np.float32(1.7)
        points, colors = resolved.points, resolved.colors
        if len(points):
            flat.draw_discs(points, reach, view, zbuf)
        else:
            colors, reach = np.zeros((1, 3), np.float32), np.ones(1, np.float32)
        over = self._buffer("over", (rows, cols), np.int64)
        over.fill(raster.EMPTY)
        ends, widths, rings, over_colors = _segments(picture)
        if len(ends):
            flat.draw_segments(ends, widths, rings, view, over)
        else:
            over_colors = np.zeros((1, 3), np.float32)
        tight, wide = self._buffer("tight", (height, width)), self._buffer("wide", (height, width))
        spare = self._buffer("spare1", (height, width))
        flat.cover(zbuf, tight)
        reach_px = max(1, round(height / 110))
        flat.blur(tight, 0, reach_px, spare)
        flat.blur(spare, 1, reach_px, wide)
        flat.blur(wide, 0, reach_px, spare)
        flat.blur(spare, 1, reach_px, wide)
        flat.blur(tight, 0, 1, spare)
        flat.blur(spare, 1, 1, tight)
        out = np.empty((height, width, 3), np.uint8)
        drop = max(1, round(height / 130))
        flat.compose(room, zbuf, colors, reach, tight, wide, drop, over, over_colors, view, out)
        return out

    def _room(self, picture: Picture, resolved: Resolved, view: np.ndarray, cell: float) -> np.ndarray:
        """Background with obstacles, drawn again only when something of it changed."""
        walls = picture.lower is not None and picture.upper is not None
        offset = 0.009 * self.height * self.samples / float(view[2])
        numbers = np.array([*resolved.lower, *resolved.upper, cell, float(walls), offset, 0], np.float32)
        corners, starts, boxes, colors = _polygons([*picture.obstacles, *picture.meshes])
        key = b"|".join(a.tobytes() for a in (view, numbers, corners, starts, colors))
        room = self._buffer("room", (self.height * self.samples, self.width * self.samples, 3))
        if key != self._room_key:
            flat.paint_room(view, numbers, corners, starts, boxes, colors, room)
            self._room_key = key
        return room


def camera_of(picture: Picture, width: int, height: int, resolved: Resolved | None = None) -> Camera2D | Camera3D:
    """The camera of a picture, or one that sees its whole bounds below the caption. ``ValueError`` on a wrong one."""
    camera = picture.camera
    if camera is None:
        low, high = (resolved or picture.checked())[-2:]
        if picture.dim == 3:
            return Camera3D.fit(low, high, aspect=width / height)
        return Camera2D.fit(low, high, width / height, head=caption.head(height, picture.caption))
    wanted = Camera2D if picture.dim == 2 else Camera3D
    if not isinstance(camera, wanted):
        raise ValueError(f"picture: a {picture.dim}-D picture needs a {wanted.__name__}, got {type(camera).__name__}")
    if isinstance(camera, Camera2D) and not (camera.height > 0 and np.isfinite([*camera.center, camera.height]).all()):
        raise ValueError(f"camera: center must be finite and height > 0 m, got {camera.center} and {camera.height}")
    return camera


def nice(size: float) -> float:
    """The round number (1, 2 or 5 times a power of ten) nearest below ``size``."""
    if not size > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(size))
    return max(k * power for k in (1, 2, 5) if k * power <= size * 1.0001)


def _camera_numbers(camera: Camera3D, rows: int, cols: int, size: float) -> np.ndarray:
    right, up, forward = camera.basis()
    focal = rows / (2.0 * math.tan(math.radians(camera.fov) / 2))
    return np.array([*camera.position, *right, *up, *forward, focal, cols / 2, rows / 2, 1e-3 * size], np.float32)


def _far(cam: np.ndarray, size: float) -> float:
    """Where the floor has melted into the background: a few sizes of the scene behind the camera's distance."""
    return float(abs(cam[2])) + float(np.linalg.norm(cam[:2])) + 4.0 * size


def _sun_numbers(points: np.ndarray, radius: np.ndarray, corners: np.ndarray) -> np.ndarray:
    down = SUN / np.linalg.norm(SUN)
    right = np.cross(down, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(right, down), down])
    spots = [corners.reshape(-1, 3)] if len(corners) else []
    if len(points):
        spots.append(points)
    grain = float(radius.max()) if len(points) else 0.0
    seen = np.concatenate(spots) @ axes.T.astype(np.float32) if spots else np.zeros((1, 3))
    low, high = seen.min(axis=0) - 2 * grain, seen.max(axis=0) + 2 * grain
    side = max(float((high - low)[:2].max()), 1e-6) * 1.01
    side = 1.25 ** math.ceil(math.log(side, 1.25))  # few sizes, whole texels: edges do not crawl from frame to frame
    low[:2] = np.floor(low[:2] * (SHADOW / side)) * (side / SHADOW)
    bias = max(1.2 * float(np.median(radius)) if len(points) else 0.0, 2.0 * side / SHADOW)
    return np.array([*axes.ravel(), *low, SHADOW / side, bias, 0, 0], np.float32)


def _with_balls(picture: Picture, resolved: Resolved) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Particles, then markers and lines as balls: points (n, 3), radius (n,), colours (n, 3)."""
    points, radius, colors = [resolved.points], [resolved.radius], [resolved.colors]
    for marker in picture.markers:
        position, size, color = marker
        points.append(np.asarray(position, np.float32).reshape(1, 3))
        radius.append(np.full(1, size, np.float32))
        colors.append(np.asarray(color, np.float32).reshape(1, 3))
    for line in picture.lines:
        path, width, color = line
        path = np.asarray(path, float).reshape(-1, 3)
        if len(path) < 2 or not width > 0:
            continue
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
        count = min(int(length[-1] / (0.25 * width)) + 2, 20000)
        at = np.linspace(0.0, length[-1], count)
        points.append(np.stack([np.interp(at, length, path[:, a]) for a in range(3)], axis=1).astype(np.float32))
        radius.append(np.full(count, width / 2, np.float32))
        colors.append(np.broadcast_to(np.asarray(color, np.float32), (count, 3)))
    parts = (np.concatenate(points), np.concatenate(radius), np.concatenate(colors))
    return tuple(np.ascontiguousarray(p) for p in parts)  # type: ignore[return-value]


def _triangles(meshes: Sequence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corners (f, 3, 3), corner normals (f, 3, 3) and colours (f, 3) of all meshes; edges sharper than ~40° stay."""
    corners, normals, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 3, 3))], [np.zeros((0, 3))]
    for k, mesh in enumerate(meshes):
        if len(mesh) not in (2, 3) or np.ndim(mesh[0]) != 2 or np.shape(mesh[0])[1] != 3 or np.ndim(mesh[1]) != 2:
            raise ValueError(f"picture: mesh {k} must be (vertices (v, 3), faces (f, 3), color) in 3-D")
        vertices, faces = np.asarray(mesh[0], float), np.asarray(mesh[1])
        if faces.size and (faces.shape[1] != 3 or faces.min() < 0 or faces.max() >= len(vertices)):
            raise ValueError(f"picture: mesh {k} has faces that name vertices outside 0..{len(vertices) - 1}")
        if not np.isfinite(vertices).all():
            raise ValueError(f"picture: mesh {k} has a vertex that is not finite")
        color = np.asarray(mesh[2] if len(mesh) == 3 else (0.5, 0.53, 0.58), float)
        p = vertices[faces]
        face = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        vertex = np.zeros_like(vertices)
        face = _unit(face)
        for c in range(3):
            np.add.at(vertex, faces[:, c], face)
        smooth = _unit(vertex)[faces]
        flat_ = np.broadcast_to(face[:, None], smooth.shape)
        blend = (smooth * flat_).sum(axis=2, keepdims=True) > 0.85
        corners.append(p)
        normals.append(np.where(blend, smooth, flat_))
        colors.append(np.broadcast_to(color, (len(faces), 3)))
    return (
        np.concatenate(corners).astype(np.float32),
        np.concatenate(normals).astype(np.float32),
        np.concatenate(colors).astype(np.float32),
    )


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)


def _polygons(polygons: Sequence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Corners (k, 2), starts (p + 1,), boxes (p, 4), colours (p, 3); one far away where there is none."""
    corners, starts, boxes, colors = [], [0], [], []
    for k, polygon in enumerate(polygons):
        points = np.asarray(polygon[0], np.float32)
        if len(polygon) not in (1, 2) or points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
            raise ValueError(f"picture: polygon {k} must be (points (k, 2), color) in 2-D")
        if len(points) < 3:
            continue
        corners.append(points)
        starts.append(starts[-1] + len(points))
        boxes.append([*points.min(axis=0), *points.max(axis=0)])
        colors.append(polygon[1] if len(polygon) == 2 else (0.5, 0.53, 0.58))
    if not corners:
        corners, starts, boxes, colors = [np.full((3, 2), 1e9)], [0, 3], [[1e9] * 4], [[0.0] * 3]
    return (
        np.concatenate(corners).astype(np.float32),
        np.asarray(starts, np.int32),
        np.asarray(boxes, np.float32),
        np.asarray(colors, np.float32),
    )


def _segments(picture: Picture) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends (n, 4), widths (n,), ring radii (n,), colours (n, 3) of lines and markers of a flat picture."""
    ends, widths, rings, colors = [], [], [], []
    for path, width, color in picture.lines:
        path = np.asarray(path, float).reshape(-1, 2)
        for a, b in itertools.pairwise(path):
            ends.append([*a, *b])
            widths.append(width)
            rings.append(0.0)
            colors.append(color)
    for position, size, color in picture.markers:
        ends.append([*position, *position])
        widths.append(0.22 * size)
        rings.append(size)
        colors.append(color)
    return (
        np.asarray(ends, np.float32).reshape(-1, 4),
        np.asarray(widths, np.float32),
        np.asarray(rings, np.float32),
        np.asarray(colors, np.float32).reshape(-1, 3),
    )
