"""What a trace file says about itself: rank, world size, process groups, devices, host. Any of it may be missing or broken."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from c3prof.errors import DataWarning

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_. ]?0*(\d+)(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Header:
    """rank None and world_size -1 when unknown; groups as (name, description, size, ranks as compact JSON or None)."""

    rank: int | None = None
    rank_evidence: str = "none"
    world_size: int = -1
    backend: str | None = None
    host: str | None = None
    base_ns: int = 0
    groups: tuple[tuple[str, str, int, str | None], ...] = ()
    devices: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    warnings: tuple[DataWarning, ...] = ()


def header_of(raw: Mapping[str, Any], name: str) -> Header:
    """The header of a file from its decoded top-level values; `name` is the file as the user knows it."""
    warnings: list[DataWarning] = []
    info = _decoded(raw.get("distributedInfo"))
    if not isinstance(info, dict):
        if raw.get("distributedInfo") is not None:
            warnings.append(DataWarning("distributed-info", f"distributedInfo is not an object: {_short(info)}", path=name))
        info = {}
    rank, evidence = _count(info.get("rank")), "distributedInfo"
    if rank is None and (named := _RANK_IN_NAME.search(name)) and (rank := _count(named[1])) is not None:
        evidence = "file name"
        warnings.append(DataWarning("rank-from-name", f"the file does not say its rank; {rank} is taken from its name", path=name))
    return Header(
        rank=rank,
        rank_evidence=evidence if rank is not None else "none",
        world_size=_count(info.get("world_size")) or -1,
        backend=str(info["backend"]) if info.get("backend") else None,
        host=str(raw["host_name"]) if raw.get("host_name") else None,
        base_ns=_integer(raw.get("baseTimeNanoseconds")) or 0,
        groups=_groups(info.get("pg_config"), name, warnings),
        devices=_devices(raw.get("deviceProperties")),
        warnings=tuple(warnings),
    )


def _groups(config: Any, name: str, warnings: list[DataWarning]) -> tuple[tuple[str, str, int, str | None], ...]:
    config = _decoded(config)
    if config is None:
        return ()
    if not isinstance(config, list):
        warnings.append(DataWarning("pg-config", f"pg_config cannot be read: {_short(config)}", path=name, bears_on_numbers=False))
        return ()
    rows = []
    for entry in (e for e in config if isinstance(e, dict)):
        ranks = _decoded(entry.get("ranks"))
        size = _count(entry.get("pg_size")) or (len(ranks) if isinstance(ranks, list) else None) or -1
        listed = json.dumps(ranks, separators=(",", ":")) if isinstance(ranks, list) else None
        rows.append((str(entry.get("pg_name", "")), str(entry.get("pg_desc", "")), size, listed))
    return tuple(rows)


def _devices(properties: Any) -> dict[int, Mapping[str, Any]]:
    listed = _decoded(properties)
    if not isinstance(listed, list):
        return {}
    known = ((_integer(entry.get("id")), _described(entry)) for entry in listed if isinstance(entry, dict))
    return {number: entry for number, entry in known if number is not None}


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a device: its name, and those that are whole numbers above 0."""
    numbers = {key: number for key, value in entry.items() if (number := _integer(value)) is not None and number > 0}
    return numbers | ({"name": entry["name"]} if isinstance(entry.get("name"), str) else {})


def _decoded(value: Any) -> Any:
    """A value that some writers put into the file as a string holding JSON."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value.strip()):
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _count(value: Any) -> int | None:
    """A number of ranks, or of one of them; None for what cannot be one."""
    number = _integer(value)
    return number if number is not None and 0 <= number < 2**31 else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
