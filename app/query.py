"""The part of an address after "?": the state of a view, so that a link reproduces what one sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode


@dataclass(frozen=True)
class Query:
    """Settings of a view by name, as text."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, search: str) -> "Query":
        """The query of `?a=b&c=d`; what cannot be read is left out."""
        return cls(dict(parse_qsl(search.removeprefix("?"), max_num_fields=100)) if len(search) < 10_000 else {})

    @property
    def text(self) -> str:
        """The query as it stands in an address."""
        return f"?{urlencode(self.values)}" if self.values else ""

    def get(self, name: str, default: str = "") -> str:
        return self.values.get(name, default)


def link(path: str, **values: object) -> str:
    """An address in the app: /timeline?t0=…"""
    return path + Query({name: str(value) for name, value in values.items() if value is not None}).text
