"""The only owner of ``ti.init`` and the only place Taichi is imported from.

Taichi holds one global runtime per process. A second ``ti.init`` silently kills every earlier array and kernel, so
whoever starts it is remembered here together with a generation number; simulations compare generations before they
touch memory and raise one clear ``RuntimeError`` when theirs is gone.
"""

import contextlib
import io
import os
import threading
import time
from pathlib import Path

os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
os.environ.setdefault("TI_LOG_LEVEL", "error")

try:
    import taichi as ti
    from taichi.lang import impl
    from taichi.lang._ndarray import ScalarNdarray
except ImportError as error:  # slim images lack libX11, which Taichi's wheel needs at load time
    raise ImportError(
        f"taichi could not be loaded ({error}); on Debian or Ubuntu slim images: apt-get install libx11-6"
    ) from error

__all__ = ["Runtime", "current", "free", "impl", "launch_lock", "ndarray", "start", "ti"]

#: Taichi allocates, compiles and launches from one thread at a time; two threads compiling cold crash the process.
launch_lock = threading.RLock()


def _program():
    """Taichi's running program, or ``None`` before the first start."""
    return impl.get_runtime().prog


class _Owned(ScalarNdarray):
    """A scalar array that only :func:`free` frees.

    Taichi's own frees itself when Python collects it, by address, in whatever program runs *then*: after a restart
    that may be the address of somebody else's living array. (Its arrays of vectors and matrices free nothing, ever.)
    """

    def __del__(self) -> None:
        pass


class _Freed(_Owned):
    """What an array is after :func:`free`: whoever still holds one gets an error, not somebody else's memory."""

    @property
    def arr(self):
        raise RuntimeError("this array was freed when its simulation was closed")


def ndarray(element, shape) -> ti.Ndarray:
    """A Taichi array that lives until :func:`free`, or until the runtime ends. Arguments as of ``ti.ndarray``."""
    with launch_lock:
        array = ti.ndarray(element, shape)
    if type(array) is ScalarNdarray:
        array.__class__ = _Owned
    return array


def free(array: ti.Ndarray, runtime: "Runtime") -> None:
    """Free the memory of an array made under ``runtime``. Safe to call twice, and after the runtime is gone."""
    if type(array) is _Freed:
        return
    with launch_lock:
        if runtime.alive:
            impl.get_runtime().prog.delete_ndarray(array.arr)
        del array.arr
        array.__class__ = _Freed


class Runtime:
    """What the running Taichi program was started with."""

    def __init__(self, precision: str, arch: str, threads: int, program: object, owned: bool) -> None:
        self.precision = precision
        self.arch = arch
        self.threads = threads
        self.program = program
        self.owned = owned
        if not any(known is program for known in _programs):
            _programs.append(program)

    @property
    def real(self):
        """Taichi's floating-point type of this runtime (``ti.f32`` or ``ti.f64``)."""
        return ti.f64 if self.precision == "f64" else ti.f32

    @property
    def alive(self) -> bool:
        """Whether arrays made under this runtime still exist."""
        return _program() is self.program


_current: Runtime | None = None

#: Every program there was. Destroying an old one resets the memory pool it shares with the living one, whose arrays
#: then point nowhere; and who holds the last reference is chance. They have given their memory back when they ended.
_programs: list[object] = []


#: Age, s, from which on a lock of the cache belongs to a killed process: Taichi holds one for the moment it takes to
#: write files, makes it anew each time, and would not cache again as long as it lies there.
STALE = 120.0


def _cache_folder() -> str | None:
    """Folder of compiled kernels, one per version and test worker; ``None`` if it cannot be written."""
    configured = os.environ.get("TI_OFFLINE_CACHE_FILE_PATH")
    base = Path(configured) if configured else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = base / "taichi-sim" / f"taichi-{'.'.join(map(str, ti.__version__))}"
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    folder = folder / worker if worker else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        lock = folder / "ticache.lock"
        with contextlib.suppress(FileNotFoundError):  # another process may be quicker
            if time.time() - lock.stat().st_mtime > STALE:
                lock.unlink()
    except OSError:
        return None
    return str(folder)


def start(precision: str = "f32", arch: str = "cpu", threads: int | None = None) -> Runtime:
    """Start Taichi, or join the runtime that is already there.

    A runtime started by the user (their own ``ti.init``) is joined as it is, never restarted: their fields stay
    alive. One started by us is restarted only when another precision, arch or thread count is asked for.

    Raises ``ValueError`` for an unknown precision or arch, or one the user's own runtime does not have;
    ``RuntimeError`` if the requested accelerator is not there.
    """
    global _current
    if precision not in ("f32", "f64"):
        raise ValueError(f"precision must be 'f32' or 'f64', got {precision!r}")
    if arch not in ("cpu", "cuda"):
        raise ValueError(f"arch must be 'cpu' or 'cuda', got {arch!r}")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads must be a whole number of at least 1, got {threads!r}")
    with launch_lock:
        program = _program()
        if program is not None and (_current is None or not _current.alive):
            _current = _join_foreign(program)
        if _current is not None and _current.alive:
            wanted = (precision, arch, threads or _current.threads)
            if wanted == (_current.precision, _current.arch, _current.threads):
                return _current
            if not _current.owned:
                raise ValueError(
                    f"Taichi was already started by your program with {_current.precision} on {_current.arch}, "
                    f"{_current.threads} threads; ask for the same, or build the simulation before calling ti.init"
                )
        threads = threads or os.cpu_count() or 1
        folder = _cache_folder()
        options = {"offline_cache": True, "offline_cache_file_path": folder} if folder else {"offline_cache": False}
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a line that nothing turns off
            ti.init(
                arch=ti.cuda if arch == "cuda" else ti.cpu,
                default_fp=ti.f64 if precision == "f64" else ti.f32,
                cpu_max_num_threads=threads,
                log_level=ti.ERROR,
                verbose=False,
                **options,
            )
        if arch == "cuda" and ti.cfg.arch != ti.cuda:
            raise RuntimeError("no CUDA device was found; use --arch cpu")
        _current = Runtime(precision, arch, threads, _program(), owned=True)
        return _current


def _join_foreign(program: object) -> Runtime:
    config = ti.cfg
    arch = "cuda" if config.arch == ti.cuda else "cpu"
    precision = "f64" if config.default_fp == ti.f64 else "f32"
    return Runtime(precision, arch, config.cpu_max_num_threads, program, owned=False)


def current() -> Runtime:
    """The runtime in use. Raises ``RuntimeError`` if none was started or it was replaced."""
    if _current is None or not _current.alive:
        raise RuntimeError("the Taichi runtime of this simulation is gone (ti.init or ti.reset was called since)")
    return _current
