"""Arguments of the verbs: options they share, and mistakes answered in one line with the nearest name."""

import argparse
import re
from collections.abc import Callable, Sequence

from taichi_sim.core.errors import nearest, unknown


class Parser(argparse.ArgumentParser):
    """An ``argparse`` parser whose mistakes are :class:`ValueError`, and that finds SCENE wherever it stands."""

    def __init__(self, verb: str, doc: str, examples: str) -> None:
        super().__init__(
            prog=f"taichi-sim {verb}",
            usage=f"taichi-sim {verb} {'[KIND]' if verb == 'list' else 'SCENE'} [options]",
            description=f"{doc[0].upper()}{doc[1:]}.",
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.scene_needed = False
        self._many: list[str] = []

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise ``ValueError`` instead of printing the usage and leaving."""
        raise ValueError(f"{message} ({self.prog} --help)")

    def read(self, words: Sequence[str]) -> argparse.Namespace | None:
        """The arguments; ``None`` after ``--help``. Raises ``ValueError`` for mistakes."""
        if "-h" in words or "--help" in words:
            print(self.format_help().rstrip())
            return None
        known, rest = self.parse_known_args(_joined(words))
        if rest:
            self._unknown(rest[0])
        if self.scene_needed and known.scene is None:
            known.scene = self._scene_taken(known)
        return known

    def _unknown(self, word: str) -> None:
        name = word.split("=")[0]
        if not name.startswith("-"):
            raise ValueError(f"unexpected argument {word!r} ({self.prog} --help)")
        options = [o for o in self._option_string_actions if o.startswith("--")]
        close = nearest(name, options) or nearest(f"-{name}", options)
        hint = f"did you mean {close!r}?" if close else f"allowed: {', '.join(options)}"
        raise ValueError(f"unknown option {name!r}; {hint}")

    def _scene_taken(self, known: argparse.Namespace) -> str:
        """SCENE where an option before it took it as one more of its values."""
        for name in self._many:
            values = getattr(known, name)
            if isinstance(values, list) and len(values) > 1 and "=" not in values[-1]:
                return values.pop()
        if isinstance(getattr(known, "video", None), str) and "." not in known.video.replace("\\", "/").split("/")[-1]:
            scene, known.video = known.video, ""
            return scene
        raise ValueError(
            "SCENE is missing: give a scene file or the name of a shipped scene (`taichi-sim list scenes`)"
        )

    # ---- what verbs share ----

    def scene(self) -> None:
        """SCENE and ``--set``."""
        self.scene_needed = True
        self._many.append("set")
        self.add_argument("scene", metavar="SCENE", nargs="?", help="scene file, or name of a shipped scene")
        self.add_argument(
            "--set", metavar="PATH=VALUE", nargs="+", action="extend", default=[],
            help="change an entry of the scene file, for example materials.jelly.youngs_modulus=2e4, or solver.dt=1e-4 "
            "(the largest substep; the duration stays)",
        )  # fmt: skip

    def paths(self, flag: str, **options) -> None:
        """An option with several values."""
        self._many.append(flag.lstrip("-"))
        self.add_argument(flag, nargs="+", action="extend", **options)

    def settings(self, precision: str | None = "f32", memory: bool = False) -> None:
        """Precision (``None``: not offered), arch, threads, seed, and the memory budget."""
        group = self.add_argument_group("how it is computed")
        if precision:
            group.add_argument(
                "--precision", metavar="f32|f64", type=choice("precision", ("f32", "f64")), default=precision,
                help=f"single or double precision (default {precision})",
            )  # fmt: skip
        if memory:
            group.add_argument(
                "--memory", metavar="SIZE", default="500MB",
                help="budget of arrays and snapshots; gradients do not depend on it (default 500MB)",
            )  # fmt: skip
        group.add_argument(
            "--arch", metavar="cpu|cuda", type=choice("arch", ("cpu", "cuda")), default="cpu", help="default cpu"
        )
        group.add_argument(
            "--threads", metavar="N", type=whole(1, 4096), help="default: all cores; results do not depend on it"
        )
        group.add_argument(
            "--seed", metavar="N", type=whole(0, 2**63 - 1), default=0,
            help="placement of particles and random starts (default 0)",
        )  # fmt: skip

    def json(self) -> None:
        """``--json``."""
        self.add_argument(
            "--json", metavar="FILE", help="write the result as JSON, missing folders are made; - for standard output"
        )

    def out(self, verb: str, holds: str) -> None:
        """``--out``."""
        self.add_argument(
            "--out", metavar="DIR", help=f"folder for {holds} (default runs/<scene>-{verb}); made where missing"
        )

    def video(self, what: str) -> None:
        """``--video``; without a name the video goes into the folder of ``--out``."""
        self.add_argument(
            "--video", metavar="FILE", nargs="?", const="",
            help=f"write a video {what}: .mp4, .gif, or a folder of PNGs (default name: <scene>.mp4 in DIR); "
            "missing folders are made",
        )  # fmt: skip


def _joined(words: Sequence[str]) -> list[str]:
    """``--option -5MB`` as ``--option=-5MB``: a word that begins like a negative number is a value."""
    joined: list[str] = []
    for word in words:
        before = joined[-1] if joined else ""
        if re.match(r"-\.?\d", word) and before.startswith("--") and "=" not in before:
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


def whole(low: int, high: int) -> Callable[[str], int]:
    """Type of an option that is a whole number."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be a whole number from {low} to {high}, got {text!r}")
        return value

    return read


def choice(what: str, names: Sequence[str]) -> Callable[[str], str]:
    """Type of an option that is one of a few words."""

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(unknown(what, text, names))
        return text

    return read
