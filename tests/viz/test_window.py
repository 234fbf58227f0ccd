"""The window, on a real X server without a screen, moved by real key and mouse events."""

import os
import shutil
import subprocess
import time

import numpy as np
import pytest

from taichi_sim.viz import panel as side
from taichi_sim.viz.camera import Camera2D, Orbit
from taichi_sim.viz.picture import Picture
from taichi_sim.viz.window import Window, check_display

missing = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
needs_screen = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


class Model:
    """Counts what the window asks for; draws one block of particles that moves right with every frame."""

    def __init__(self, dim: int = 3, frames: int = 1000) -> None:
        self.dim, self.frames = dim, frames
        self.frame = self.resets = 0
        self.moved: list[tuple[int, float]] = []
        self.fail = False
        self.sliders = [("bodies.torso.stiffness", 2e4, 1e3, 1e6), ("gravity.y", -9.81, -20.0, 0.0)]

    def step(self):
        if self.fail:
            raise RuntimeError("particle 7 of body 'torso' left the domain\nsecond line")
        if self.frame >= self.frames:
            return False
        self.frame += 1
        return True

    def reset(self):
        self.frame = 0
        self.resets += 1

    def on_slider(self, index, value):
        self.moved.append((index, value))

    def status(self):
        return f"frame {self.frame}"

    def picture(self):
        axis = np.linspace(0.3, 0.5, 6)
        points = np.stack(np.meshgrid(*[axis] * self.dim), axis=-1).reshape(-1, self.dim)
        points[:, 0] += 0.002 * self.frame
        return Picture(self.dim, points, (0.9, 0.1, 0.1), 0.03, lower=(0.0,) * self.dim, upper=(1.0,) * self.dim)


class Screen:
    """An X server of our own: what is on it, and hands that type and point."""

    def __init__(self, folder) -> None:
        read, write = os.pipe()
        self.process = subprocess.Popen(
            [
                "Xvfb",
                "-displayfd",
                str(write),
                "-screen",
                "0",
                "1100x800x24",
                "-fbdir",
                str(folder),
                "-nolisten",
                "tcp",
            ],
            pass_fds=(write,),
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        self.name = f":{number}"
        self.file = folder / "Xvfb_screen0"

    def picture(self) -> np.ndarray:
        """Pixels from the window's corner on, (799, 1099, 3); the server keeps them in a file in XWD format."""
        raw = self.file.read_bytes()
        head = np.frombuffer(raw[:100], ">u4")
        start = int(head[0]) + 12 * int(head[19])
        width, height, line = int(head[4]), int(head[5]), int(head[12])
        rows = np.frombuffer(raw[start : start + line * height], np.uint8).reshape(height, line)
        return rows[:, : 4 * width].reshape(height, width, 4)[1:, 1:, 2::-1]  # the window has a border of one pixel

    def do(self, *words: object) -> None:
        subprocess.run(["xdotool", *map(str, words)], check=True, env={**os.environ, "DISPLAY": self.name})


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    server = Screen(tmp_path_factory.mktemp("screen"))
    yield server
    server.process.terminate()
    server.process.wait(10)


@pytest.fixture
def opened(screen, f32, monkeypatch):
    """Opens windows on the screen; closes them before the screen goes."""
    monkeypatch.setenv("DISPLAY", screen.name)
    windows = []

    def open_(model, **options):
        windows.append(Window(model, 400, 300, samples=1, **options))
        settle(windows[-1], lambda: windows[-1].frames_shown > 0)
        screen.do("mousemove", 200, 150)
        settle(windows[-1])
        return windows[-1]

    yield open_
    for window in windows:
        window.close()


def settle(window, until=None, seconds=10.0):
    """Let the window work until a condition holds (or for a moment); a condition that never holds fails the test."""
    end = time.perf_counter() + (seconds if until else 0.15)
    while window.tick() and time.perf_counter() < end:
        if until and until():
            return
    assert until is None or until()


@needs_screen
def test_window_shows_the_renderers_own_picture(screen, opened):
    window = opened(Model())
    expected = window.renderer.render(window.model.picture())
    settle(window, lambda: (screen.picture()[:300, :400] == expected).all())
    assert (screen.picture()[10:290, 410:640] == side.ACCENT).all(axis=2).any()  # sliders beside it
    assert (screen.picture()[305:325, 5:200] > 200).all(axis=2).any()  # text of the status line


@needs_screen
def test_keys_run_pause_step_reset_speed_and_quit(screen, opened):
    model = Model()
    window = opened(model)
    settle(window)
    assert model.frame == 0 and window.paused
    screen.do("key", "period")
    settle(window, lambda: model.frame == 1)
    screen.do("key", "Right")
    settle(window, lambda: model.frame == 2)
    screen.do("key", "space")
    settle(window, lambda: model.frame > 6)
    screen.do("key", "space")
    settle(window, lambda: window.paused)
    frame = model.frame
    settle(window)
    assert model.frame == frame
    assert "paused" in window.status_text() and f"frame {frame}" in window.status_text()
    screen.do("key", "plus")
    settle(window, lambda: window.speed == 2.0)
    screen.do("key", "minus", "key", "minus")
    settle(window, lambda: window.speed == 0.5)
    screen.do("key", "r")
    settle(window, lambda: model.resets == 1 and model.frame == 0)
    screen.do("key", "Escape")
    settle(window, lambda: not window.is_open)
    assert window.tick() is False


@needs_screen
def test_drag_turns_the_camera_and_the_wheel_zooms(screen, opened):
    window = opened(Model())
    before = window.renderer.render(window.model.picture())
    screen.do("mousedown", 1, "mousemove", 300, 180, "mouseup", 1)
    settle(window, lambda: isinstance(window.camera, Orbit))
    settle(window)
    assert window.camera.azimuth == pytest.approx(-60.0 - 35.0, abs=1.0)
    assert window.camera.elevation == pytest.approx(22.0 + 10.5, abs=1.0)
    assert (screen.picture()[:300, :400] != before).any(axis=2).mean() > 0.05
    far = window.camera.distance
    screen.do("click", 4)
    settle(window, lambda: window.camera.distance < far)
    screen.do("click", 5, "click", 5)
    settle(window, lambda: window.camera.distance > far)
    target = window.camera.target
    screen.do("mousedown", 3, "mousemove", 200, 150, "mouseup", 3)
    settle(window, lambda: window.camera.target != target)
    screen.do("key", "c")
    settle(window, lambda: window.camera is None)
    settle(window, lambda: (screen.picture()[:300, :400] == before).all())


@needs_screen
def test_flat_scenes_are_moved_by_dragging(screen, opened):
    window = opened(Model(dim=2))
    screen.do("mousedown", 1, "mousemove", 260, 150, "mouseup", 1)
    settle(window, lambda: isinstance(window.camera, Camera2D))
    settle(window)
    assert window.camera.center[0] == pytest.approx(0.5 - 60 / 300 * window.camera.height, abs=0.02)


@needs_screen
def test_sliders_follow_the_mouse(screen, opened):
    model = Model()
    window = opened(model)
    x, y = window.panel.knob(1)
    screen.do("mousemove", 400 + x, y, "mousedown", 1, "mousemove", 400 + side.PAD - 8, y)
    settle(window, lambda: model.moved and model.moved[-1] == (1, -20.0))
    screen.do("mousemove", 400 + side.WIDTH - side.PAD + 8, y, "mouseup", 1)
    settle(window, lambda: model.moved[-1] == (1, 0.0))
    moves = len(model.moved)
    screen.do("mousemove", 400 + side.PAD, y)  # no button held: nothing follows
    settle(window)
    assert len(model.moved) == moves and window.camera is None
    screen.do("click", 3)
    settle(window, lambda: model.moved[-1] == (1, -9.81))
    middle = 401 + side.WIDTH / 2  # the border
    screen.do("mousemove", middle, window.panel.knob(0)[1], "click", 1)
    settle(window, lambda: model.moved[-1][0] == 0)
    assert model.moved[-1][1] == pytest.approx((1e3 * 1e6) ** 0.5, rel=1e-6)  # logarithmic over three decades


@needs_screen
def test_end_and_errors_pause_and_are_shown(screen, opened):
    model = Model(frames=3)
    window = opened(model, running=True)
    settle(window, lambda: window.ended)
    assert model.frame == 3 and window.paused and "end" in window.status_text()
    screen.do("key", "space")
    settle(window, lambda: model.resets == 1)
    model.fail = True
    screen.do("key", "period")
    settle(window, lambda: bool(window.message))
    assert window.message == "particle 7 of body 'torso' left the domain" and window.paused
    model.fail = False
    screen.do("key", "r")
    settle(window, lambda: not window.message and model.frame == 0)


@pytest.mark.parametrize("display", [None, "", ":987", "nonsense"])
def test_no_display_is_one_line(monkeypatch, capfd, display):
    if display is None:
        monkeypatch.delenv("DISPLAY", raising=False)
    else:
        monkeypatch.setenv("DISPLAY", display)
    with pytest.raises(ValueError, match="no display") as caught:
        Window(Model(), 400, 300)
    with pytest.raises(ValueError, match="no display"):
        check_display()
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_panel_scrolls_and_refuses_bad_ranges():
    panel = side.Panel([(f"w{k}", 0.0, -1.0, 1.0) for k in range(40)], 600)
    assert panel.rows < 40 and panel.hit(100, panel.knob(0)[1]) == 0
    panel.scrolled(100)
    assert panel.scroll == 40 - panel.rows
    assert panel.hit(100, panel.knob(39)[1]) == 39
    assert panel.hit(100, panel.height - 5) is None
    assert panel.draw().shape == (600, side.WIDTH, 3)
    assert panel.value_at(0, side.PAD) == -1.0 and panel.value_at(0, 1e9) == 1.0
    with pytest.raises(ValueError, match="slider 'E'"):
        side.Panel([("E", 1.0, 2.0, 2.0)], 600)
