"""What a process group is for."""

import pytest

from c3prof.analysis.groups import dimension_of, process_groups
from c3prof.analysis.joined import joined
from c3prof.sample_traces.ranks import Job, simulated
from tests.collective_frames import record, trace


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("mesh_tp", "tp"), ("TENSOR_MODEL_PARALLEL_GROUP", "tp"), ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"), ("DATA_PARALLEL_GROUP", "dp"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "dp"), ("CONTEXT_PARALLEL_GROUP", "cp"), ("EXPERT_MODEL_PARALLEL_GROUP", "ep"), ("EXPERT_DATA_PARALLEL_GROUP", "dp"),
        ("mesh_dp_shard", "dp"), ("fsdp", "dp"), ("ep:deepep", "ep"), ("default_pg", None), ("undefined", None), ("http", None), ("deep", None), ("0", None),
    ],
)  # fmt: skip
def test_dimension_by_the_first_word(text: str, dimension: str | None) -> None:
    assert dimension_of(text) == dimension


def test_dimensions_and_links_of_a_generated_job() -> None:
    table = process_groups(joined(simulated(Job(ranks=32, tp=4, pp=2, layers=1, ep=1, steps=2)).trace)).frame
    assert table.groupby("dimension").size().to_dict() == {"dp": 8, "ep": 8, "pp": 16, "tp": 8, "world": 1}
    assert set(table.loc[table["dimension"] == "tp", "link"]) == {"intra-node"}
    assert set(table.loc[table["dimension"] == "pp", "link"]) == {"inter-node"}
    assert table["records"].sum() == 32 * 2 * (1 + 1 + 1 + 4 + 1)
    assert (table["unmatched"] == 0).all()


def rows(ranks: list[int], group: str, kind: str = "all_reduce") -> list[dict[str, object]]:
    members = "[" + ",".join(map(str, ranks)) + "]"
    return [
        record(r, 10.0 * k, 10.0 * k + 5, seq=k, group=group, group_desc="undefined", group_ranks=members, collective=kind)
        for r in ranks
        for k in range(2)
    ]


def test_dimension_by_size_stride_and_kind() -> None:
    run = joined(
        trace(
            [
                *rows([0, 1], "1"),
                *rows([0, 2], "2"),
                *rows([1, 3], "3", "send_recv"),
                *rows([2, 3], "4", "all_to_all"),
                *rows([0, 1, 2, 3], "0"),
            ]
        )
    )
    table = process_groups(run).frame.set_index("group")
    assert table["dimension"].to_dict() == {"1": "tp", "2": "dp", "3": "pp", "4": "ep", "0": "world"}


def test_the_only_group_is_data_parallel() -> None:
    assert list(process_groups(joined(trace(rows([0, 1, 2], "0")))).frame["dimension"]) == ["dp"]


def test_a_users_file_beats_everything() -> None:
    run = joined(simulated(Job(ranks=4, tp=2, layers=1, steps=1)).trace)
    table = process_groups(run, {"mesh_tp": "cp"}).frame
    assert set(table.loc[table["group_desc"] == "mesh_tp", "dimension"]) == {"cp"}
    assert set(table.loc[table["group_desc"] == "mesh_tp", "dimension_evidence"]) == {"file"}


def test_unknown_hosts_give_no_link() -> None:
    table = process_groups(joined(trace(rows([0, 1], "0"), hosts=["node0", None]))).frame
    assert list(table["link"]) == [None]
