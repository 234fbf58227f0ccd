"""A window that shows the renderer's own picture, on Taichi's plain X11/Cocoa/Win32 window: no Vulkan needed.

The window knows no simulation; whatever it shows implements :class:`Viewable`.
"""

import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from taichi_sim import runtime
from taichi_sim.viz import panel as side
from taichi_sim.viz.camera import Camera2D, Camera3D, Orbit
from taichi_sim.viz.caption import font
from taichi_sim.viz.picture import Picture
from taichi_sim.viz.renderer import Renderer, camera_of

STATUS = 28  # px
FASTEST, SLOWEST = 16.0, 1.0 / 16.0
STEPS_PER_REDRAW = 16


class Viewable(Protocol):
    """What a window shows. Two optional attributes are used when there: ``frame_dt`` (s; speed 1 is then real time)
    and a method ``status() -> str`` for the line at the bottom."""

    #: (name, value, low, high) of every design variable that gets a slider
    sliders: Sequence[tuple[str, float, float, float]]

    def step(self) -> bool | None:
        """Go on by one frame; ``False`` when the end is reached and nothing happened."""
        ...

    def reset(self) -> None:
        """Go back to the first frame."""
        ...

    def picture(self) -> Picture:
        """What is there now."""
        ...

    def on_slider(self, index: int, value: float) -> None:
        """The user moved slider ``index`` to ``value``."""
        ...


def check_display() -> None:
    """Raise ``ValueError`` (one line) when no window can be opened here. Opens none."""
    if not sys.platform.startswith("linux"):
        return
    name = os.environ.get("DISPLAY", "")
    if not name:
        raise ValueError("no display: DISPLAY is not set; run where there is a screen, or write a video instead")
    host, _, rest = name.rpartition(":")
    number = rest.split(".")[0]
    if not number.isdigit():
        raise ValueError(f"no display: DISPLAY is {name!r}, expected something like ':0'")
    path = f"/tmp/.X11-unix/X{number}"
    local = host in ("", "unix")
    places: list[tuple[int, object]] = (
        [(socket.AF_UNIX, path), (socket.AF_UNIX, "\0" + path)]
        if local
        else [(socket.AF_INET, (host, 6000 + int(number))), (socket.AF_INET6, (host, 6000 + int(number)))]
    )
    for family, place in places:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(3.0)
            try:
                probe.connect(place)  # type: ignore[arg-type]
                return
            except OSError:
                continue
    raise ValueError(f"no display: nothing answers at DISPLAY {name!r}; start an X server, or write a video instead")


class Window:
    """An open window on a :class:`Viewable`. ``width`` and ``height`` (px) are of the picture.

    Space runs and pauses, ``.`` or → does one frame, r resets, + and - change the speed, c restores the first view,
    Escape closes. Dragging turns the camera (3-D) or moves it (2-D), right or shift dragging moves it, the wheel
    zooms, or scrolls the sliders. A right click on a slider puts its first value back. Starts paused unless
    ``running``; with ``loop`` the end is followed by a reset. An error of the model (``ValueError``,
    ``RuntimeError``) pauses and is shown in the status line. Raises ``ValueError`` when no window can be opened.
    """

    def __init__(
        self,
        model: Viewable,
        width: int = 800,
        height: int = 600,
        title: str = "taichi-sim",
        running: bool = False,
        loop: bool = False,
        samples: int = 2,
    ) -> None:
        check_display()
        self.model = model
        self.width, self.height = int(width), int(height)
        self.renderer = Renderer(self.width, self.height, samples)
        self.panel = side.Panel(list(model.sliders), self.height + STATUS)
        self.paused, self.loop, self.speed = not running, loop, 1.0
        self.frames_shown = 0
        self.message = ""
        self.ended = False
        self.camera: Orbit | Camera2D | None = None
        self._drag: tuple[str, float, float] | None = None
        self._due, self._last, self._rate = 0.0, time.perf_counter(), 0.0
        self._changed: dict[int, float] = {}
        self._dirty = True
        self._frame = np.zeros((self.height, self.width, 3), np.uint8)
        self._gui = _open(title, self.width + side.WIDTH, self.height + STATUS)
        self._pixels = self._gui.img.reshape(self.height + STATUS, self.width + side.WIDTH)

    # -- life ---------------------------------------------------------------------------------------------------
    @property
    def is_open(self) -> bool:
        """Whether the window is still there."""
        return self._gui is not None

    def run(self, seconds: float | None = None) -> None:
        """Show and react until the user closes the window, or for this time (s)."""
        end = None if seconds is None else time.perf_counter() + seconds
        while self.tick() and (end is None or time.perf_counter() < end):
            pass
        self.close()

    def tick(self) -> bool:
        """One round: events, steps, picture. ``False`` once the window is closed."""
        if self._gui is None:
            return False
        for event in self._gui.get_events():
            self._react(event)
            if self._gui is None:
                return False
        now = time.perf_counter()
        elapsed, self._last = now - self._last, now
        self._apply_sliders()
        if not self.paused:
            self._advance(elapsed)
        if self._dirty:
            self._dirty = False
            self._draw()
            self._rate = 0.9 * self._rate + 0.1 / max(elapsed, 1e-3)
        with runtime.launch_lock:
            self._gui.show()
        return True

    def close(self) -> None:
        """Close the window. Safe to call twice."""
        if self._gui is not None:
            self._gui.close()
            self._gui = None
            self.renderer.close()

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- time ---------------------------------------------------------------------------------------------------
    def _advance(self, elapsed: float) -> None:
        """As many frames as the speed asks for since the last round; a slow model falls behind, it never piles up."""
        frame_dt = getattr(self.model, "frame_dt", None)
        self._due += self.speed * (min(elapsed, 0.25) / frame_dt if frame_dt else 1.0)
        steps = min(int(self._due), STEPS_PER_REDRAW)
        self._due = min(self._due - steps, 1.0)
        for _ in range(steps):
            if not self._step():
                break

    def _step(self) -> bool:
        done = self._guard(self.model.step)
        self._dirty = True
        if done is not False:
            return True
        if not self.message and self.loop:
            self._reset()
            return True
        self.ended = not self.message
        self.paused = True
        return False

    def _reset(self) -> None:
        self.message, self.ended = "", False
        self._guard(self.model.reset)
        self._dirty = True

    def _guard(self, action, *values) -> object:
        """Call the model; its errors are shown, not raised, and count as ``False``."""
        try:
            return action(*values)
        except (ValueError, RuntimeError) as error:
            self.message = (str(error).splitlines() or [type(error).__name__])[0]
            self.paused = True
            return False

    # -- events -------------------------------------------------------------------------------------------------
    def _react(self, event) -> None:
        gui = runtime.ti.GUI
        x = event.pos[0] * (self.width + side.WIDTH)
        y = (1.0 - event.pos[1]) * (self.height + STATUS)
        if event.key == gui.EXIT:
            self.close()
        elif event.key == gui.WHEEL:
            self._wheel(x, y, 1 if event.delta[1] > 0 else -1)
        elif event.key == gui.MOVE:
            self._move(x, y)
        elif event.key in (gui.LMB, gui.RMB, gui.MMB):
            if event.type == gui.PRESS:
                self._press(event.key, x, y, "Shift" in event.modifier)
            else:
                self._release()
        elif event.type == gui.PRESS:
            self._key(event.key)

    def _key(self, key: str) -> None:
        gui = runtime.ti.GUI
        self._dirty = True
        if key in (gui.ESCAPE, "q"):
            self.close()
        elif key == gui.SPACE:
            self.paused = not self.paused
            if not self.paused and (self.ended or self.message):
                self._reset()
        elif key in (".", gui.RIGHT):
            self.paused = True
            self._step()
        elif key == "r":
            self._reset()
        elif key in ("=", "+", "KP_Add", gui.UP):
            self.speed = min(self.speed * 2.0, FASTEST)
        elif key in ("-", "KP_Subtract", gui.DOWN):
            self.speed = max(self.speed / 2.0, SLOWEST)
        elif key in ("c", "Home"):
            self.camera = None

    def _press(self, key: str, x: float, y: float, shift: bool) -> None:
        self._dirty = True
        if x >= self.width:
            index = self.panel.hit(x - self.width, y)
            if index is None:
                return
            if key == runtime.ti.GUI.LMB:
                self.panel.held = index
                self._slide(index, self.panel.value_at(index, x - self.width))
            else:
                self._slide(index, self.panel.first[index])
        elif y < self.height:
            self._drag = ("turn" if key == runtime.ti.GUI.LMB and not shift else "move", x, y)

    def _release(self) -> None:
        self._dirty = self._dirty or self.panel.held is not None
        self._drag = self.panel.held = None

    def _move(self, x: float, y: float) -> None:
        if self.panel.held is not None:
            self._slide(self.panel.held, self.panel.value_at(self.panel.held, x - self.width))
        elif self._drag is not None:
            what, x0, y0 = self._drag
            self._drag = (what, x, y)
            camera = self._own_camera()
            if isinstance(camera, Orbit) and what == "turn":
                self.camera = camera.turned(-0.35 * (x - x0), 0.35 * (y - y0))
            else:
                self.camera = camera.panned(-(x - x0) / self.height, (y - y0) / self.height)
            self._dirty = True

    def _wheel(self, x: float, y: float, up: int) -> None:
        if x >= self.width:
            self.panel.scrolled(-up)
        else:
            self.camera = self._own_camera().zoomed(1.12**up)
        self._dirty = True

    def _own_camera(self) -> Orbit | Camera2D:
        """The camera the user moves; starts as the picture's own."""
        if self.camera is None:
            camera = camera_of(self.model.picture(), self.width, self.height)
            self.camera = Orbit.of(camera) if isinstance(camera, Camera3D) else camera
        return self.camera

    def _slide(self, index: int, value: float) -> None:
        if value != self.panel.values[index]:
            self.panel.values[index] = value
            self._changed[index] = value

    def _apply_sliders(self) -> None:
        """Tell the model once per round, however many places the mouse passed."""
        for index, value in self._changed.items():
            self.message = ""
            self._guard(self.model.on_slider, index, value)
            self._dirty = True
        self._changed.clear()

    # -- picture ------------------------------------------------------------------------------------------------
    def _draw(self) -> None:
        picture = self._guard(self.model.picture)
        if isinstance(picture, Picture):
            if self.camera is not None:
                camera = self.camera.camera() if isinstance(self.camera, Orbit) else self.camera
                picture = replace(picture, camera=camera)
            frame = self._guard(self.renderer.render, picture)
            if isinstance(frame, np.ndarray):
                self._frame = frame
        whole = np.empty((self.height + STATUS, self.width + side.WIDTH, 3), np.uint8)
        whole[: self.height, : self.width] = self._frame
        whole[self.height :, : self.width] = self._status_line()
        whole[:, self.width :] = self.panel.draw()
        rgb = whole.astype(np.uint32)
        if sys.platform == "darwin":
            self._pixels[:] = 0xFF000000 | rgb[..., 2] << 16 | rgb[..., 1] << 8 | rgb[..., 0]
        else:
            self._pixels[:] = rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]
        self.frames_shown += 1

    def status_text(self) -> str:
        """What the line at the bottom says."""
        state = self.message or ("end" if self.ended else "paused" if self.paused else "running")
        own = getattr(self.model, "status", None)
        parts = [state, f"speed ×{self.speed:g}", str(own()) if callable(own) else ""]
        if not self.paused:
            parts.append(f"{self._rate:.0f} pictures/s")
        return "  ·  ".join(part for part in parts if part)

    def _status_line(self) -> np.ndarray:
        from PIL import Image, ImageDraw

        image = Image.new("RGB", (self.width, STATUS), (164, 58, 50) if self.message else (46, 52, 64))
        text = self.status_text()
        ImageDraw.Draw(image).text((12, STATUS / 2), text, font=font(12), fill=(236, 239, 244), anchor="lm")
        return np.asarray(image)


def _heard(level: str) -> bool:
    """Whether Taichi prints messages of this level now."""
    return bool(runtime.ti.is_logging_effective(level))


def _open(title: str, width: int, height: int):
    """A Taichi window whose buffer we fill ourselves; its own error line is kept off the terminal."""
    ti = runtime.ti
    with runtime.launch_lock:
        if runtime.impl.get_runtime().prog is None:
            runtime.start()
        level = next((name for name in (ti.TRACE, ti.DEBUG, ti.INFO, ti.WARN) if _heard(name)), ti.ERROR)
        ti.set_logging_level(ti.CRITICAL)
        try:
            for _ in range(5):
                try:
                    gui = ti.GUI(title, (width, height), fast_gui=True)  # type: ignore[arg-type]
                except RuntimeError:
                    time.sleep(0.2)  # a bare server restarts when its last client (our check) leaves
                else:
                    gui.fps_limit = 60
                    return gui
        finally:
            ti.set_logging_level(level)
    raise ValueError("no display: the window could not be opened; write a video instead")
