"""What a user may ask of the analyses."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Options of an analysis run; the same settings on the same input give the same report.

    only: names of the tables wanted, empty for all; steps: first and last step to look at, None for all;
    top: how many rows the long rankings keep; seed: of the bootstrap; groups: (name or description, dimension) of
    process groups, as the user says.
    """

    only: tuple[str, ...] = ()
    steps: tuple[int, int] | None = None
    top: int = 20
    seed: int = 0
    groups: tuple[tuple[str, str], ...] = ()

    def wants(self, table: str) -> bool:
        return not self.only or table in self.only
