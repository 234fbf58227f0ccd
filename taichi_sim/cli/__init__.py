"""The command line. One module a verb, loaded when its verb is asked for, so that help and mistakes come at once.

Exit codes: 0 good, 1 the run failed, 2 the user's mistake, 130 interrupted.
"""

import importlib
import os
import sys
from collections.abc import Sequence

#: Verb, what it does, and the module that does it.
VERBS = {
    "run": ("simulate a scene", "run"),
    "optimize": ("find better values for a scene's [[design]] entries", "optimize"),
    "check": ("compare gradients with finite differences", "check"),
    "view": ("watch a scene in a window", "view"),
    "import": ("make a scene of a robot's URDF or MJCF file", "import_robot"),
    "list": ("show every law, material, shape, actuator, signal, objective, … with its parameters", "listing"),
    "bench": ("time this installation on a scene", "bench"),
}

EXAMPLES = """examples:
  taichi-sim run crawler --video crawler.mp4
  taichi-sim run my_scene.toml --set materials.jelly.youngs_modulus=2e4
  taichi-sim optimize crawler --iterations 40 --video crawler.mp4
  taichi-sim check throw
  taichi-sim list laws

`taichi-sim VERB --help` shows the options of a verb. SCENE is a file, or the name of a shipped scene
(`taichi-sim list scenes`). With TAICHI_SIM_DEBUG=1 in the environment errors come with their traceback."""

_TRACEBACK = " (TAICHI_SIM_DEBUG=1 shows the traceback)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: this process's) and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        return _dispatch(words)
    except KeyboardInterrupt as error:
        return _say(str(error) or "interrupted", 130)
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except Exception as error:
        code = None if os.environ.get("TAICHI_SIM_DEBUG") else _blame(error)
        if code is None:
            raise
        own = error.__cause__ is not None  # raised by the user's own code
        return _say(f"{str(error) or type(error).__name__}{_TRACEBACK if own else ''}", code)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else _say("a verb is missing; see above", 2)
    if words[0] in ("-V", "--version"):
        import taichi_sim

        print(f"taichi-sim {taichi_sim.__version__}")
        return 0
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        from taichi_sim.core.errors import unknown

        what = "option" if verb.startswith("-") else "verb"
        return _say(unknown(what, verb, ["--help", "--version"] if what == "option" else VERBS), 2)
    doc, name = VERBS[verb]
    from taichi_sim.cli.parser import Parser

    module = importlib.import_module(f"taichi_sim.cli.{name}")
    parser = Parser(verb, doc, module.EXAMPLES)
    module.add_arguments(parser)
    arguments = parser.read(rest)
    if arguments is None:
        return 0
    return module.execute(arguments)


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {doc}" for verb, (doc, _) in VERBS.items())
    return (
        "usage: taichi-sim VERB …\n\nDifferentiable simulation of soft matter and what it touches.\n\n"
        f"verbs:\n{verbs}\n\noptions:\n  --help, --version\n\n{EXAMPLES}"
    )


def _blame(error: Exception) -> int | None:
    """Exit code of an error that is not a bug of ours, else ``None``."""
    from taichi_sim.core.errors import RolloutError

    if isinstance(error, RolloutError) and not isinstance(error, ValueError):
        return 1
    if isinstance(error, ValueError | FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return 2
    if isinstance(error, ImportError) and "taichi" in str(error):  # a system library is missing, said in words
        return 2
    if isinstance(error, RuntimeError) and "CUDA" in str(error):
        return 2
    return 1 if isinstance(error, OSError | MemoryError) else None


def _say(message: str, code: int) -> int:
    """Write a message to standard error, one line a problem, and return ``code``."""
    for line in message.splitlines():
        print(f"taichi-sim: {line}", file=sys.stderr)
    return code
