"""Operations on their way from call to record, without torch."""

from typing import Any

import pytest

from c3prof.collectors import ledger as module
from c3prof.collectors.ledger import Ledger


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are ready at once."""
    monkeypatch.setattr(module, "_SETTLED_NS", 0)


class Work:
    """Stands for torch's Work: compared by identity, held weakly."""


def facts(seq: int = 0) -> dict[str, Any]:
    return {"op": "allreduce_", "collective": "all_reduce", "group": "0", "seq": seq, "step": 0, "call_ns": 10, "return_ns": 20}


def test_an_operation_is_open_until_its_end_is_told_once() -> None:
    ledger = Ledger()
    pending = ledger.entered(facts(), end_known=True)
    assert [one["seq"] for one in ledger.open_operations()] == [0]
    assert ledger.records() == []
    ledger.ended(pending, "future")
    ledger.ended(pending, "wait")
    assert ledger.open_operations() == []
    (record,) = ledger.records()
    assert record.end_from == "future"
    assert record.end_ns is not None
    assert ledger.records() == []


def test_a_wait_is_timed_and_ends_what_has_no_completion() -> None:
    ledger, work = Ledger(), Work()
    ledger.entered(facts(), work, end_known=True)
    pending = ledger.of_work(work)
    assert pending is not None
    assert ledger.waited(pending, lambda: "result") == "result"
    (record,) = ledger.records()
    assert record.end_from == "wait"
    assert record.wait_start_ns is not None
    assert record.blocked_ns is not None
    assert record.end_ns is not None
    assert record.blocked_ns >= record.end_ns - record.wait_start_ns >= 0


def test_a_failed_wait_leaves_the_operation_open() -> None:
    ledger = Ledger()
    pending = ledger.entered(facts(), end_known=True)

    def fail() -> None:
        raise RuntimeError("peer closed")

    with pytest.raises(RuntimeError, match="peer closed"):
        ledger.waited(pending, fail)
    assert len(ledger.open_operations()) == 1
    (record,) = ledger.records(final=True)
    assert record.end_ns is None
    assert record.blocked_ns is not None


def test_a_record_is_not_written_while_somebody_waits() -> None:
    ledger = Ledger()
    pending = ledger.entered(facts(), end_known=True)

    def wait() -> None:
        ledger.ended(pending, "future")
        assert ledger.records() == []

    ledger.waited(pending, wait)
    assert len(ledger.records()) == 1


def test_a_tensor_leads_to_its_operation_once() -> None:
    ledger = Ledger()
    pending = ledger.entered(facts(), output=4096, end_known=True)
    assert ledger.of_output(4096) is pending
    assert ledger.of_output(4096) is None


def test_a_work_that_nobody_holds_is_forgotten() -> None:
    ledger = Ledger()
    for number in range(10):
        ledger.entered(facts(number), Work(), end_known=True)
    assert len(ledger._works) <= 4
    assert len(ledger.open_operations()) == 10


def test_what_nobody_waits_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 3)
    ledger = Ledger()
    for number in range(5):
        ledger.entered(facts(number), end_known=True)
    assert [record.seq for record in ledger.records()] == [0, 1]
    assert [one["seq"] for one in ledger.open_operations()] == [2, 3, 4]
