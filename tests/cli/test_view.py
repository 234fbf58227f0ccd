"""``view``: the player by itself, and the window on a real X server with real keys and mouse."""

import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from taichi_sim.cli.view import Player, _compute, slider_range
from taichi_sim.scene.edit import set_values
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation import DesignVariable, Simulation
from taichi_sim.viz.renderer import Renderer

sys.path.append(str(Path(__file__).parents[1] / "viz"))
from test_window import Screen

missing = [name for name in ("Xvfb", "xdotool") if shutil.which(name) is None]
needs_screen = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    server = Screen(tmp_path_factory.mktemp("screen"))
    yield server
    server.process.terminate()
    server.process.wait(10)


@pytest.fixture
def sim(tiny):
    with Simulation(Scene.load(tiny), segment=40) as made:
        yield made


@pytest.mark.parametrize("display", ["", ":987"])
def test_without_a_display_one_line_and_exit_2(cli, tiny, monkeypatch, display):
    monkeypatch.setenv("DISPLAY", display)
    answer = cli("view", tiny)
    assert answer.code == 2 and len(answer.lines) == 1 and "no display" in answer.err


def test_player_plays_computes_and_recomputes(sim):
    player = Player(sim)
    assert [s[0] for s in player.sliders] == [
        "bodies.block.velocity[0]", "bodies.block.velocity[1]", "pull.weights[0]",
        "pull.weights[1]",
    ]  # fmt: skip
    assert player.stale and player.step() and player.frame == 0  # waits for frames
    seen = []

    def alive():
        player.step()
        seen.append((player.frame, len(player.positions), player.status()))
        return True

    player.compute(alive)
    assert not player.stale and len(player.positions) == 11
    assert [s[:2] for s in seen[:3]] == [(0, 1), (1, 2), (2, 3)] and "computing" in seen[0][2]
    assert "frame 10 of 10" in player.status() and "computing" not in player.status()
    assert player.step() is False
    before = player.positions[10].copy()
    player.on_slider(0, -0.5)
    assert player.stale and sim.get("bodies.block.velocity")[0] == -0.5
    player.compute(lambda: True)
    assert player.positions[10][:, 0].mean() < before[:, 0].mean() - 0.05
    player.reset()
    assert player.frame == 0 and player.step()


def test_a_slider_moved_while_computing_starts_again(sim):
    player = Player(sim)

    def alive():
        if len(player.positions) == 4:
            player.on_slider(1, 0.2)
        return True

    player.compute(alive)
    assert player.stale and len(player.positions) == 4
    player.compute(lambda: True)
    assert not player.stale and len(player.positions) == 11 and sim.get("bodies.block.velocity")[1] == 0.2
    closed = Player(sim)
    closed.compute(lambda: False)
    assert len(closed.positions) == 1


def test_player_shows_obstacles_where_sliders_put_them(tiny):
    table = Scene.load(tiny).to_dict()
    table["design"] = [{"path": "obstacles.rock.position", "lower": -0.2, "upper": 0.2}]
    with Simulation(Scene.from_dict(table), segment=40) as sim:
        player = Player(sim)
        player.compute(lambda: True)
        before = player.picture().obstacles[0].points.mean(axis=0)
        player.on_slider(0, -0.1)
        player.compute(lambda: True)
        after = player.picture().obstacles[0].points.mean(axis=0)
    np.testing.assert_allclose(after - before, [-0.1, 0.0], atol=1e-9)


def test_slider_ranges():
    def ends(value, lower=-np.inf, upper=np.inf, scale="linear", step=None):
        arrays = (np.array([x], float) for x in (value, lower, upper))
        return slider_range(DesignVariable("p", *arrays, scale, 0.0, step), (0,))

    assert ends(0.5, -1, 1) == (-1, 1)
    assert ends(1e4, 0, np.inf, "log") == (1e3, 1e5)
    assert ends(0.0) == (-1, 1)
    assert ends(3.0, 0.0) == (0.0, 9.0)
    assert ends(1.0, step=0.1) == pytest.approx((0.7, 1.3))


@needs_screen
def test_window_follows_keys_and_sliders(screen, sim, monkeypatch):
    from taichi_sim.viz import panel as side
    from taichi_sim.viz.window import Window

    monkeypatch.setenv("DISPLAY", screen.name)
    player = Player(sim)

    def settle(until, seconds=20.0):
        end = time.perf_counter() + seconds
        while window.tick() and time.perf_counter() < end:
            if player.stale:
                _compute(player, window)
            if until():
                return
        assert until()

    with Window(player, 400, 300, samples=1, running=True, loop=True) as window:
        screen.do("mousemove", 200, 150)
        settle(lambda: len(player.positions) == 11 and player.frame > 2)
        screen.do("key", "space")
        settle(lambda: window.paused)
        screen.do("key", "r")
        settle(lambda: player.frame == 0)
        screen.do("key", "period")
        settle(lambda: player.frame == 1)
        with Renderer(400, 300, 1) as renderer:
            expected = renderer.render(player.picture())
        settle(lambda: (screen.picture()[:300, :400] == expected).all())
        x, y = window.panel.knob(0)
        screen.do("mousemove", 400 + x, y, "mousedown", 1, "mousemove", 400 + side.PAD, y, "mouseup", 1)
        low = player.sliders[0][2]
        settle(lambda: sim.get("bodies.block.velocity")[0] == pytest.approx(low, abs=0.05) and not player.stale)
        settle(lambda: len(player.positions) == 11)
        assert player.frame == 1 and window.paused  # still where it was, with the new motion
        assert (player.positions[1] - player.positions[0])[:, 0].mean() < 0


@needs_screen
def test_view_opens_a_window_and_escape_ends_it(screen, program, tiny):
    process = program("view", tiny, "--size", "400x300", DISPLAY=screen.name)
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None and not screen.picture()[:300, :400].any():
        time.sleep(0.1)
    screen.do("mousemove", 200, 150)
    while time.monotonic() < end and process.poll() is None:
        screen.do("key", "Escape")
        time.sleep(0.2)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "particles" in out


@needs_screen
def test_a_value_that_cannot_be_simulated_is_said_in_the_window(screen, tiny, monkeypatch):
    from taichi_sim.viz.window import Window

    monkeypatch.setenv("DISPLAY", screen.name)
    scene = set_values(
        Scene.load(tiny), {"bodies.block.velocity": 0.0, "solver.max_speed": 0.1, "solver.sort_every": 100}
    )
    with Simulation(scene, segment=40) as sim:
        player = Player(sim)
        with Window(player, 400, 300, samples=1, running=True) as window:
            player.on_slider(0, 60.0)
            _compute(player, window)
            assert "substep" in window.message and window.paused and not player.stale
