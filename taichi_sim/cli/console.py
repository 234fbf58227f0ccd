"""What the verbs print: facts, tables, progress, and JSON that nothing else mixes with."""

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from taichi_sim.core.places import check_place

#: Width of tables that do not go to a terminal.
WIDE = 150


class Console:
    """Where a verb prints. With ``--json -`` standard output is kept for the JSON and all else goes to standard error.

    Use it in a ``with`` block: it raises ``ValueError`` where FILE of ``--json FILE`` cannot be written.
    """

    def __init__(self, json: str | None = None) -> None:
        self.json = json
        self._out: IO[str] | None = None
        self._kept = contextlib.ExitStack()

    def __enter__(self) -> "Console":
        if self.json is not None and self.json != "-":
            check_place("--json", self.json)
        if self.json == "-":
            self._out = self._kept.enter_context(_reserved())
        return self

    def __exit__(self, *error: object) -> None:
        self._kept.close()

    @property
    def stream(self) -> IO[str]:
        """Where people's output goes."""
        return sys.stderr if self.json == "-" else sys.stdout

    def line(self, text: str = "") -> None:
        """One line."""
        print(text, file=self.stream, flush=True)

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and what they are, aligned."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            self.line(f"{name:<{width}}  {text}")

    def notes(self, notes: Sequence[str]) -> None:
        """Things the user should know."""
        for note in notes:
            self.line(f"note: {note}")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
        """A table; columns in ``right`` are numbers."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console as Rich
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for k, name in enumerate(header):
            last = k == len(header) - 1
            table.add_column(name, justify="right" if k in right else "left", overflow="fold", no_wrap=not last)
        for row in rows:
            table.add_row(*row)
        tty = self.stream.isatty()
        Rich(file=self.stream, markup=False, emoji=False, highlight=False, width=None if tty else WIDE).print(table)

    def emit(self, value: Mapping[str, Any] | Sequence[Any]) -> None:
        """Write the result where ``--json`` says, whole or not at all."""
        if self.json is None:
            return
        from taichi_sim.io.atomic import to_json, write_json

        if self.json != "-":
            write_json(self.json, value)
            return
        assert self._out is not None
        self._out.write(to_json(value))
        self._out.flush()

    @contextlib.contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int, str], None]]:
        """Yields ``update(done, total, text)``. Shows a bar on a terminal; elsewhere a line a minute about ``what``,
        unless that is empty."""
        if not sys.stderr.isatty():
            yield _Minutes(what)
            return
        from rich.console import Console as Rich
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=14),
            TextColumn("{task.fields[text]}", markup=False),
        )
        bar = Progress(*columns, console=Rich(stderr=True), transient=True, refresh_per_second=5)
        task = bar.add_task(what, total=None, text="")
        began = 0.0

        def update(done: int, total: int, text: str = "") -> None:
            nonlocal began
            if not began:  # not before: what is said until then stays above the bar
                began = time.perf_counter()
                bar.start()
            spent = time.perf_counter() - began
            left = clock(spent * (total - done) / done) + " left" if done else ""
            bar.update(task, completed=done, total=total, text=text or f"{100 * done // max(total, 1)} %  {left}")

        try:
            yield update
        finally:
            if began:
                bar.stop()


class _Minutes:
    """A line on standard error after ten seconds and then every minute: how far it is, and the time left."""

    def __init__(self, what: str) -> None:
        self.what, self.began, self.next = what, 0.0, 10.0

    def __call__(self, done: int, total: int, text: str = "") -> None:
        now = time.perf_counter()
        self.began = self.began or now
        spent = now - self.began
        if spent < self.next or not self.what or not done:
            return
        self.next = spent + 60.0
        left = clock(spent * (total - done) / done)
        print(
            f"{self.what}: {100 * done // max(total, 1)} %, {left} left  {text}".rstrip(), file=sys.stderr, flush=True
        )


def clock(seconds: float) -> str:
    """``1:05`` or ``2:00:00``."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextlib.contextmanager
def _reserved() -> Iterator[IO[str]]:
    """The real standard output; until the block ends everybody else's goes to standard error, C code's too."""
    out = sys.stdout
    out.flush()
    try:
        real = out.fileno() == 1
    except (OSError, io.UnsupportedOperation, AttributeError):
        real = False
    if not real:  # a test's, or somebody's own
        with contextlib.redirect_stdout(sys.stderr):
            yield out
        return
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr), open(kept, "w", encoding="utf-8", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(kept, 1)
        os.close(kept)
