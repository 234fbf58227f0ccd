"""Videos keep every frame, their size and what is where, or are not written at all."""

import os

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from taichi_sim.io.video import as_bytes, check_video_path, write_video

WIDTH, HEIGHT, FRAMES = 301, 203, 37


def marked(k: int) -> np.ndarray:
    """A grey frame with a red marker top right, and a blue bar that grows by 5 px a frame at the bottom."""
    frame = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
    frame[:24, -24:] = (220, 30, 30)
    frame[-10:, : 5 * k + 5] = (30, 30, 220)
    return frame


def played(file) -> list[np.ndarray]:
    """All frames as ffmpeg plays them."""
    reader = imageio_ffmpeg.read_frames(str(file))
    width, height = next(reader)["size"]
    return [np.frombuffer(data, np.uint8).reshape(height, width, 3) for data in reader]


def check(frames: list[np.ndarray], size: tuple[int, int]) -> None:
    assert len(frames) == FRAMES
    for k, frame in enumerate(frames):
        frame = np.asarray(frame)[..., :3].astype(int)
        assert frame.shape[:2] == size
        assert np.abs(frame[4:20, WIDTH - 20 : WIDTH - 4] - (220, 30, 30)).max() < 40  # top right, upright
        assert np.abs(frame[4:20, 4:20] - 200).max() < 20
        blue = (frame[HEIGHT - 6, :WIDTH, 2] - frame[HEIGHT - 6, :WIDTH, 0] > 90).sum()
        assert abs(blue - (5 * k + 5)) <= 3  # the k-th frame is the k-th frame


def test_mp4_of_odd_size_keeps_37_frames_and_the_marker(tmp_path):
    file = tmp_path / "clip.mp4"
    info = write_video(file, (marked(k) for k in range(FRAMES)), fps=25)
    assert info == (file, FRAMES, 25.0, 302, 204)
    check(played(file), (204, 302))
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(file))
    assert frames == FRAMES and seconds == pytest.approx(FRAMES / 25, abs=0.05)
    assert os.listdir(tmp_path) == ["clip.mp4"]


def test_gif_of_odd_size_keeps_37_frames_and_the_marker(tmp_path):
    file = tmp_path / "clip.gif"
    assert write_video(file, (marked(k) for k in range(FRAMES)), fps=12.5) == (file, FRAMES, 12.5, WIDTH, HEIGHT)
    with Image.open(file) as image:
        frames, times = [], []
        for k in range(image.n_frames):
            image.seek(k)
            frames.append(np.asarray(image.convert("RGB")))
            times.append(image.info["duration"])
    check(frames, (HEIGHT, WIDTH))
    assert sum(times) == pytest.approx(1000 * FRAMES / 12.5)


def test_gif_is_read_alike_by_ffmpeg(tmp_path):
    file = tmp_path / "clip.gif"
    write_video(file, (marked(k) for k in range(FRAMES)), fps=20)
    check(played(file), (HEIGHT, WIDTH))


def test_png_sequence_in_a_folder_and_by_pattern(tmp_path):
    info = write_video(tmp_path / "frames", (marked(k) for k in range(FRAMES)))
    assert (info.frames, info.width, info.height) == (FRAMES, WIDTH, HEIGHT)
    names = sorted(os.listdir(tmp_path / "frames"))
    assert names == [f"{k:04d}.png" for k in range(FRAMES)]
    assert (np.asarray(Image.open(tmp_path / "frames" / "0011.png")) == marked(11)).all()
    (tmp_path / "frames" / "notes.txt").write_text("mine")
    write_video(tmp_path / "frames", [marked(0)] * 2)  # shorter: the old ones go, other files stay
    assert sorted(os.listdir(tmp_path / "frames")) == ["0000.png", "0001.png", "notes.txt"]
    write_video(tmp_path / "clip-%03d.png", [marked(0), marked(1)])
    assert sorted(f for f in os.listdir(tmp_path) if f != "frames") == ["clip-000.png", "clip-001.png"]


@pytest.mark.parametrize(("name", "theirs"), [("pics", "pics/2023.png"), ("f-%03d.png", "f-007.png")])
@pytest.mark.parametrize("content", ["picture", "words"])
def test_pictures_of_somebody_else_are_not_replaced(tmp_path, name, theirs, content):
    file = tmp_path / theirs
    file.parent.mkdir(exist_ok=True)
    Image.new("RGB", (4, 4)).save(file) if content == "picture" else file.write_text("mine")
    before = file.read_bytes()
    for attempt in (lambda: check_video_path(tmp_path / name), lambda: write_video(tmp_path / name, [marked(0)] * 2)):
        with pytest.raises(ValueError, match=file.name):
            attempt()
    assert file.read_bytes() == before and len(list(file.parent.iterdir())) == 1


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif", "frames", "f-%04d.png"])
def test_no_frames_is_an_error_and_no_file(tmp_path, name):
    with pytest.raises(ValueError, match="no frames"):
        write_video(tmp_path / name, iter([]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif"])
def test_one_frame_and_tiny_frames(tmp_path, name):
    write_video(tmp_path / name, [marked(3)])
    one = played(tmp_path / name)  # ffmpeg repeats GIF frames to keep its own rate
    assert len(one) == 1 or (name == "clip.gif" and Image.open(tmp_path / name).n_frames == 1)
    write_video(tmp_path / name, [np.zeros((3, 5, 3), np.uint8)] * 2)
    assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif", "frames"])
def test_a_bad_frame_in_the_middle_keeps_the_old_file(tmp_path, name):
    write_video(tmp_path / name, [marked(0)] * 2)
    kept = sorted(p.name for p in tmp_path.rglob("*"))

    def frames():
        yield marked(0)
        bad = marked(1) / 255.0
        bad[7, 9, 1] = np.nan
        yield bad

    with pytest.raises(ValueError, match="frame 1: not finite at row 7, column 9"):
        write_video(tmp_path / name, frames())
    assert sorted(p.name for p in tmp_path.rglob("*")) == kept


def test_equal_frames_of_a_gif_stay_frames_with_their_time(tmp_path):
    file = tmp_path / "still.gif"
    write_video(file, [marked(0)] * 10 + [marked(9)] * 5, fps=30)
    with Image.open(file) as image:
        assert image.n_frames == 15
        times = []
        for k in range(15):
            image.seek(k)
            times.append(image.info["duration"])
    assert sum(times) == 500 and max(times) <= 40


def test_a_gif_faster_than_viewers_play_keeps_its_duration(tmp_path):
    info = write_video(tmp_path / "fast.gif", (marked(k) for k in range(25)), fps=62.5)
    assert (info.frames, info.fps) == (20, 50.0)


def test_floats_become_bytes():
    frame = np.linspace(0.0, 1.0, 256).reshape(16, 16, 1).repeat(3, axis=2)
    assert (as_bytes(frame, "frame")[..., 0].ravel() == np.arange(256)).all()


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (np.zeros((4, 4), np.uint8), "shape"),
        (np.zeros((4, 4, 4), np.uint8), "shape"),
        (np.zeros((4, 4, 3), np.int64), "uint8"),
        (np.full((4, 4, 3), 200.0), "from 0 to 1"),
        (np.zeros((0, 4, 3), np.uint8), "shape"),
    ],
)
def test_what_is_no_frame_is_named(tmp_path, frame, words):
    with pytest.raises(ValueError, match=f"frame 0.*{words}"):
        write_video(tmp_path / "clip.mp4", [frame])
    assert os.listdir(tmp_path) == []


def test_sizes_rates_and_names_are_checked(tmp_path):
    with pytest.raises(ValueError, match="frame 1 is 40x30, the first one 301x203"):
        write_video(tmp_path / "clip.mp4", [marked(0), np.zeros((30, 40, 3), np.uint8)])
    for fps in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="fps"):
            write_video(tmp_path / "clip.mp4", [marked(0)], fps=fps)
    for name in ("clip.avi", "clip.png", "clip.mp", "a%d"):
        with pytest.raises(ValueError, match=r"allowed: NAME\.mp4, NAME\.gif"):
            write_video(tmp_path / name, [marked(0)])
        with pytest.raises(ValueError, match="allowed"):
            check_video_path(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_what_is_there_and_is_no_folder_gets_no_pictures(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "pipe", tmp_path / "file", "/dev/null"):
        with pytest.raises(ValueError, match=r"cannot be written; allowed: .*a folder name without an ending"):
            check_video_path(path)


@pytest.mark.parametrize("when", ["while frames come", "at the end"])
def test_an_encoder_that_stops_is_one_line_and_leaves_no_file(tmp_path, monkeypatch, when):
    def stopping(*_, **__):
        yield None
        while True:
            yield
            if when == "while frames come":
                raise OSError("Broken pipe\n\nFFMPEG COMMAND:\n…")

    monkeypatch.setattr("imageio_ffmpeg.write_frames", stopping)
    with pytest.raises(OSError, match=r"v\.mp4: cannot be written: ffmpeg stopped \(.* are free there\)$") as caught:
        write_video(tmp_path / "v.mp4", [np.zeros((16, 16, 3), np.uint8)] * 3)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
