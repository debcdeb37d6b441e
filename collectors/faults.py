"""What went wrong inside the profiler: written down, warned about a few times, never raised into training."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

MOST_KEPT = 50
MOST_WARNED = 3

log = logging.getLogger("c3prof")


class Faults:
    """The errors and notes of this rank, in order; strict lets an error in the training thread out."""

    def __init__(self, rank: int = 0, strict: bool = False) -> None:
        self.rank, self.strict = rank, strict
        self.errors: list[str] = []
        self.notes: list[str] = []
        self._seen: set[str] = set()

    def error(self, where: str, error: BaseException | str) -> None:
        """Writes down an error once, with a warning for the first few."""
        text = f"{where}: {error}" if isinstance(error, str) else f"{where}: {type(error).__name__}: {error}"
        text = text[:400]
        if text in self._seen or len(self.errors) >= MOST_KEPT:
            return
        self._seen.add(text)
        self.errors.append(text)
        if len(self.errors) <= MOST_WARNED:
            log.warning("c3prof, rank %d: %s (training goes on)", self.rank, text)

    def note(self, text: str) -> None:
        """Writes down what a reader of the data must know."""
        if text not in self.notes:
            self.notes.append(text)

    @contextmanager
    def guard(self, where: str) -> Iterator[None]:
        """Turns an exception into an entry; with strict it goes on its way after that."""
        try:
            yield
        except Exception as error:
            self.error(where, error)
            if self.strict:
                raise
