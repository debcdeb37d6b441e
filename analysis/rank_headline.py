"""Report → the sentences about ranks that come first: who is waited for, how much, and how sure the clocks are."""

import numpy as np
import pandas as pd

from c3prof.analysis.headline import Headline, percent
from c3prof.table import Report
from c3prof.units import text_of_time


def rank_headline(report: Report) -> Headline:
    """What a person should know first, from waits_by_rank, stragglers, process_groups and clocks."""
    waits = report["waits_by_rank"].frame
    waited, spent = float(waits["wait_ns"].sum()), float(waits["duration_ns"].sum())
    details = (_causers(report, waits), _matched(report), _clocks(report))
    if not waits["n_collectives"].sum():
        return Headline(f"{_ranks(len(waits))}; no synchronizing collective on several: nobody's waiting can be told.", details[1:])
    share = f"{percent(waited, spent)} of the time in collectives is waiting for other ranks ({text_of_time(waited)} of {text_of_time(spent)}, all ranks)."
    return Headline(f"{_named(report)} {share}", tuple(detail for detail in details if detail))


def _ranks(n: int) -> str:
    return "1 rank" if n == 1 else f"{n:,} ranks"


def _named(report: Report) -> str:
    named = report["stragglers"].frame
    if not len(named):
        return "No rank arrives last again and again."
    first = named.iloc[0]
    cause = f", {first['cause']}" if isinstance(first["cause"], str) else ""
    others = f" ({len(named) - 1} more)" if len(named) > 1 else ""
    return f"Rank {first['rank']} is last in {first['n_last']} of {first['n_collectives']} collectives{cause}{others}."


def _causers(report: Report, waits: pd.DataFrame) -> str:
    named = report["stragglers"].frame
    total = float(waits["caused_wait_ns"].sum())
    if not len(named) or not total > 0:
        return ""
    caused = float(named["caused_wait_ns"].sum())
    return f"The stragglers cause {percent(caused, total)} of the waiting: {text_of_time(caused)}."


def _matched(report: Report) -> str:
    groups = report["process_groups"].frame
    records, unmatched = int(groups["records"].sum()), int(groups["unmatched"].sum())
    if not records:
        return ""
    return f"{records:,} communication records, {len(groups):,} process groups; {unmatched:,} records have no partner on another rank."


def _clocks(report: Report) -> str:
    clocks = report["clocks"].frame
    if len(clocks) < 2:
        return "One rank alone: waiting cannot be told from moving data, bandwidths are lower bounds."
    lost = int(clocks["offset_ns"].isna().sum())
    if lost:
        return f"{lost} of {len(clocks)} ranks share no synchronizing collective with another: their clocks cannot be compared."
    largest = float(np.abs(clocks["offset_ns"]).max())
    return f"Clocks differ by up to {text_of_time(largest)}, known within {text_of_time(float(clocks['bound_ns'].max()))}."
