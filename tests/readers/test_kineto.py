"""Kineto files → Trace: classes with their evidence, times, links, steps. Inputs are the hard ones of real files."""

import json

import numpy as np
import pytest

import c3prof
from c3prof.errors import UnreadableInput
from tests.kineto_files import annotation, document, kernel, launch, launched, memcpy, memset, nccl, op, written

S0 = 1_700_000_000_000_000  # µs; an absolute time as files without baseTimeNanoseconds have it


@pytest.fixture
def loaded(tmp_path):
    def load(events, **top):
        return c3prof.load(written(tmp_path / "t.json", document(events, **top)))

    return load


def verdicts(trace):
    """(class, evidence) by kernel name."""
    rows = trace.activities[["name", "class", "evidence"]].astype(str)
    return {name: (kind, evidence) for name, kind, evidence in rows.itertuples(index=False)}


# ---- what is communication ----


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void ncclKernel_AllGather_RING_LL<float>()",
        "rcclGenericKernel<1, false>(ncclDevComm*)",
        "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(...)",
        "void multimem_all_reduce_kernel<float>(...)",
        "void deep_ep::intranode::dispatch<8>(...)",
    ],
)
def test_communication_by_name(loaded, name):
    assert verdicts(loaded([kernel(name, 0, 10)])) == {name: ("comm", "name")}


@pytest.mark.parametrize(
    "name",
    [
        "void cub::DispatchSelectIf<int>::Kernel()",
        "DispatchReduceByKey",
        "void at::native::broadcast_kernel_launcher<float>()",
        "ClusterReduce",
        "one_shot_embedding_lookup",
    ],
)
def test_names_that_only_look_like_communication(loaded, name):
    assert verdicts(loaded([kernel(name, 0, 10)])) == {name: ("compute", "none")}


def test_metadata_beats_the_name(loaded):
    trace = loaded([kernel("ncclDevKernel_SendRecv", 0, 10, **{"Collective name": "all_to_allv", "Group size": 8})])
    assert verdicts(trace) == {"ncclDevKernel_SendRecv": ("comm", "metadata")}
    assert trace.collectives["collective"].tolist() == ["all_to_all"]
    assert trace.activities["kernel_class"].tolist() == ["all_to_all"]
    assert trace.coverage[0]["kind_differs_from_kernel_name"] == 1


def test_kernels_of_unknown_name_with_arguments_are_communication(loaded):
    events = [kernel("my_kernel", 0, 10, **{"Collective name": "allreduce", "Process Group Name": "1", "In msg nelems": 4})]
    assert verdicts(loaded(events)) == {"my_kernel": ("comm", "metadata")}


def test_generic_kernels_take_their_kind_from_arguments_where_they_have_them(loaded):
    events = [nccl("allreduce", 0, 10), kernel("ncclDevKernel_Generic", 20, 30, stream=20)]
    events[0]["name"] = "ncclDevKernel_Generic"
    trace = loaded(events)
    assert trace.collectives[["collective", "evidence"]].astype(str).to_numpy().tolist() == [
        ["all_reduce", "metadata"],
        ["unknown", "name"],
    ]


def test_record_param_comms_without_arguments_and_work_nested_in_it(loaded):
    # record_param_comms |-----------------------|      aten::cat inside it launches a kernel and a copy of its own
    events = [
        op("record_param_comms", 0, 100),
        op("aten::cat", 10, 30),
        *launched(kernel("flatten", 200, 210), 12),
        *launched(memcpy("Memcpy DtoD (Device -> Device)", 210, 215), 20),
        *launched(kernel("opaque", 220, 240, stream=20), 50),
        *launched(memcpy("Memcpy DtoD (Device -> Device) ", 240, 250, stream=20), 60),
        *launched(memset(250, 251, stream=20), 70),
    ]
    trace = loaded(events)
    assert verdicts(trace) == {
        "flatten": ("compute", "none"),
        "Memcpy DtoD (Device -> Device)": ("copy", "none"),
        "opaque": ("comm", "metadata"),
        "Memcpy DtoD (Device -> Device) ": ("comm", "copy-engine"),
        "Memset (Device)": ("copy", "none"),
    }
    assert trace.collectives[["kernels", "start_ns", "end_ns"]].to_numpy().tolist() == [[2, 220_000, 250_000]]


def test_peer_to_peer_copies_are_communication(loaded):
    assert verdicts(loaded([memcpy("Memcpy PtoP (Device -> Device)", 0, 5)])) == {"Memcpy PtoP (Device -> Device)": ("comm", "copy-engine")}


def test_fused_kernels_are_both_and_no_collective(loaded):
    trace = loaded([kernel("allreduce_fusion_kernel_oneshot_lamport", 0, 10)])
    assert verdicts(trace) == {"allreduce_fusion_kernel_oneshot_lamport": ("fused", "name")}
    assert len(trace.collectives) == 0
    assert [w.code for w in trace.warnings] == ["unattributable-fused"]


def test_an_unknown_kernel_on_a_communication_stream_is_only_suspected(loaded):
    trace = loaded([nccl("allreduce", 0, 10), nccl("allreduce", 20, 30), kernel("mystery", 40, 50, stream=20), kernel("gemm", 0, 50)])
    assert verdicts(trace)["mystery"] == ("compute", "stream")
    assert [(w.code, w.count) for w in trace.warnings] == [("suspected-comm", 1)]


def test_own_rules(tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nentry = "ours"\nclass = "comm"\nkernel_class = "all_reduce"\nwords = ["zap"]\n')
    path = written(tmp_path / "t.json", document([kernel("zap", 0, 10)]))
    assert verdicts(c3prof.load(path, rules=str(rules))) == {"zap": ("comm", "name")}
    assert verdicts(c3prof.load(path)) == {"zap": ("compute", "none")}


# ---- times ----


def spans(trace):
    return trace.activities[["start_ns", "end_ns"]].to_numpy().tolist()


def test_absolute_times_with_three_decimals_are_exact(tmp_path):
    # F11: 17 digits; float64 µs would make the second kernel begin before the first ends
    text = '{"traceEvents": [%s]}'
    form = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"device":0,"stream":%d}}'
    events = [form % (f"1714060800000000.{123 + i * 100}", "0.100", 7 + i % 2) for i in range(8)]
    trace = c3prof.load(written(tmp_path / "t.json", text % ",".join(events)))
    expected = [[1714060800000000_123 + i * 100, 1714060800000000_223 + i * 100] for i in range(8)]
    assert sorted(spans(trace)) == expected


def test_base_time_is_added(loaded):
    assert spans(loaded([kernel("k", 1.5, 2.25)], base_ns=1_711_964_646_000_000_000)) == [
        [1_711_964_646_000_001_500, 1_711_964_646_000_002_250]
    ]


def test_times_beyond_64_bits_together_with_the_base_are_told(loaded):
    trace = loaded([kernel("k", 4e15, 4e15 + 1)], base_ns=2**62)
    assert [w.code for w in trace.warnings] == ["base-time"]


def test_missing_and_negative_durations_are_left_out_and_counted(loaded):
    events = [kernel("a", 0, 10), kernel("b", 20, 30), kernel("c", 40, 30)]
    del events[1]["dur"]
    trace = loaded(events)
    assert spans(trace) == [[0, 10_000]]
    assert [(w.code, w.count) for w in trace.warnings] == [("activity-without-duration", 2)]
    assert trace.coverage[0]["activities_left_out"] == 2


def test_a_kernel_stamped_hours_away_is_left_out(loaded):
    trace = loaded([kernel("a", S0, S0 + 10), kernel("b", S0 + 20, S0 + 30), kernel("c", S0 - 7.2e9, S0 - 7.2e9 + 5)])
    assert trace.activities["name"].tolist() == ["a", "b"]
    assert [(w.code, w.count) for w in trace.warnings] == [("activity-far-away", 1)]


def test_a_span_that_holds_three_whole_successors_is_left_out(loaded):
    inside = [kernel(f"k{i}", 10 * i, 10 * i + 5) for i in range(1, 5)]
    trace = loaded([kernel("huge", 0, 100), *inside])
    assert trace.activities["name"].tolist() == ["k1", "k2", "k3", "k4"]
    assert [(w.code, w.count) for w in trace.warnings] == [("activity-too-long", 1)]


def test_full_containment_of_one_and_empty_kernels_inside_stay(loaded):
    events = [kernel("long", 0, 20), kernel("in", 5, 8), kernel("z", 30, 36), *[kernel(f"e{i}", 31 + i, 31 + i) for i in range(4)]]
    trace = loaded(events)
    assert len(trace.activities) == 7
    assert trace.warnings == ()
    assert trace.coverage[0]["same_stream_overlaps"] == 1


def test_the_tick_is_the_gcd_of_all_times(loaded):
    assert loaded([kernel("a", 4, 10), kernel("b", 12, 14)]).ranks["tick_ns"].tolist() == [2000]
    assert loaded([kernel("a", 4, 10), kernel("b", 12, 14.001)]).ranks["tick_ns"].tolist() == [1]


# ---- links ----


def test_links_from_activity_to_module(loaded):
    events = [
        annotation("forward", 0, 90),
        {**annotation("nn.Module: Linear_0", 5, 80), "cat": "python_function"},
        {**annotation("torch/nn/modules/module.py(1): _call_impl", 6, 70), "cat": "python_function"},
        op("aten::linear", 10, 60, **{"External id": 5, "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}),
        op("aten::addmm", 20, 50, **{"External id": 6}),
        *launched(kernel("gemm", 100, 110), 30),
    ]
    trace = loaded(events)
    [row] = trace.activities.to_dict("records")
    assert trace.launches["name"][row["launch"]] == "cudaLaunchKernel"
    assert trace.ops["name"][row["op"]] == "aten::addmm"
    assert trace.ops["name"][trace.ops["parent"][row["op"]]] == "aten::linear"
    assert trace.ops["dims"][trace.ops["parent"][row["op"]]] == "[[2,3],[3,4]]"
    assert trace.annotations["name"][row["annotation"]] == "nn.Module: Linear_0"
    assert trace.annotations["name"].tolist() == ["forward", "nn.Module: Linear_0"]


def test_a_kernel_without_launch_finds_its_operator_by_external_id(loaded):
    trace = loaded([op("aten::mm", 0, 5, **{"External id": 77}), kernel("gemm", 10, 20, correlation=9, **{"External id": 77})])
    assert trace.activities[["launch", "op"]].to_numpy().tolist() == [[-1, 0]]
    assert trace.coverage[0]["activities_without_launch"] == 1


def test_external_id_that_repeats_the_correlation_names_no_operator(loaded):
    trace = loaded([op("aten::mm", 0, 5, **{"External id": 9}), kernel("gemm", 10, 20, correlation=9, **{"External id": 9})])
    assert trace.activities["op"].tolist() == [-1]


def test_correlation_zero_links_nothing(loaded):
    trace = loaded([launch(0, 1, 0), nccl("allreduce", 5, 9)])
    assert trace.activities[["correlation", "launch"]].to_numpy().tolist() == [[-1, -1]]


@pytest.mark.parametrize("call", ["cuLaunchKernelEx", "cudaLaunchKernelExC", "hipExtModuleLaunchKernel", "cudaLaunchKernel_v7000"])
def test_all_launch_calls_link(loaded, call):
    trace = loaded([launch(0, 1, 5, name=call), launch(2, 3, 6, name=call), kernel("k", 5, 9, correlation=5)])
    assert trace.activities["launch"].tolist() == [0]
    assert trace.coverage[0]["launches_without_activity"] == 1


def test_graph_replay_many_kernels_on_one_correlation_id(loaded):
    # the operator around the launch of a graph says nothing about the kernels in it; NCCL's own names still do
    events = [op("record_param_comms", 0, 20), launch(5, 10, 3, name="cudaGraphLaunch")]
    events += [kernel(f"gemm_{i}", 30 + 10 * i, 35 + 10 * i, correlation=3) for i in range(500)]
    events += [kernel("ncclDevKernel_AllReduce_Sum", 6000 + 10 * i, 6005 + 10 * i, stream=20, correlation=3) for i in range(2)]
    trace = loaded(events)
    assert trace.activities["class"].value_counts().to_dict() == {"compute": 500, "comm": 2}
    assert (trace.activities["launch"] == 0).all()
    assert trace.collectives[["collective", "kernels"]].astype(str).to_numpy().tolist() == [["all_reduce", "1"]] * 2


def test_device_side_annotations_are_no_activities(loaded):
    cover = kernel("step", 0, 100)
    cover["cat"] = "gpu_user_annotation"
    trace = loaded([cover, *[kernel(f"k{i}", 20 * i, 20 * i + 10) for i in range(5)]])
    assert len(trace.activities) == 5
    assert trace.device_annotations[["start_ns", "end_ns"]].to_numpy().tolist() == [[0, 100_000]]


def test_categories_of_2021(loaded):
    events = [
        {**op("aten::mm", 0, 10), "cat": "Operator"},
        {**launch(2, 4, 5), "cat": "Runtime"},
        {**kernel("gemm", 20, 30, correlation=5), "cat": "Kernel"},
        {**memcpy("Memcpy HtoD", 30, 40), "cat": "Memcpy"},
        {**memset(40, 41), "cat": "Memset"},
    ]
    trace = loaded(events)
    assert trace.activities["kind"].tolist() == ["kernel", "memcpy", "memset"]
    assert trace.activities[["launch", "op"]].to_numpy().tolist()[0] == [0, 0]


@pytest.mark.parametrize(("stream", "expected"), [(0, 0), ("20", 20), (2**63 + 5, 5 - 2**63), (2**53 + 1, 2**53 + 1)])
def test_stream_ids(loaded, stream, expected):
    assert loaded([kernel("k", 0, 1, stream=stream)]).activities["stream"].tolist() == [expected]


def test_a_kernel_without_stream_runs_on_its_thread_id(loaded):
    event = kernel("oneapi_kernel", 0, 1)
    del event["args"]["stream"]
    event["tid"] = "stream 7"
    assert loaded([event]).activities["stream"].tolist() == [7]


# ---- steps ----


def test_steps_by_launch_then_by_device_annotation(loaded):
    mark = kernel("ProfilerStep#4", 100, 200)
    mark["cat"] = "gpu_user_annotation"
    events = [
        annotation("ProfilerStep#3", 0, 50),
        annotation("ProfilerStep#4", 50, 90),
        *launched(kernel("late", 95, 99), 40),
        *launched(kernel("next", 100, 110), 60),
        kernel("unlaunched", 120, 130, correlation=0),
        kernel("outside", 250, 260, correlation=0),
        mark,
    ]
    trace = loaded(events)
    assert dict(zip(trace.activities["name"], trace.activities["step"], strict=True)) == {
        "late": 3,
        "next": 4,
        "unlaunched": 4,
        "outside": -1,
    }
    assert trace.steps[["step", "start_ns", "end_ns"]].to_numpy().tolist() == [[3, 0, 50_000], [4, 50_000, 90_000]]
    assert "ProfilerStep#3" not in trace.annotations["name"].tolist()


def test_no_steps(loaded):
    trace = loaded([kernel("k", 0, 1)])
    assert len(trace.steps) == 0
    assert trace.activities["step"].tolist() == [-1]


# ---- the file ----


def test_array_form(tmp_path):
    trace = c3prof.load(written(tmp_path / "t.json", [kernel("k", 0, 1), {"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0}]))
    assert len(trace.activities) == 1
    assert trace.ranks["rank_evidence"].tolist() == ["none"]
    assert trace.rank_numbers == [-1]


@pytest.mark.parametrize(
    ("info", "rank", "world", "codes"),
    [
        ({"rank": 3, "world_size": 4}, 3, 4, ["missing-ranks"]),
        ('{"rank": 3, "world_size": 4}', 3, 4, ["missing-ranks"]),
        ({"world_size": 4}, -1, 4, []),
        ("not json", -1, -1, ["distributed-info"]),
        ([1, 2], -1, -1, ["distributed-info"]),
        ({"rank": 0, "world_size": 1, "pg_config": "[broken"}, 0, 1, ["pg-config"]),
    ],
)
def test_distributed_info(tmp_path, info, rank, world, codes):
    path = written(tmp_path / "t.json", {"distributedInfo": info, "traceEvents": [kernel("k", 0, 1)]})
    trace = c3prof.load(path)
    assert trace.rank_numbers == [rank]
    assert trace.ranks["world_size"].tolist() == [world]
    assert [w.code for w in trace.warnings] == codes


@pytest.mark.parametrize("form", [lambda c: c, json.dumps])
def test_process_groups(loaded, form):
    config = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}, {"pg_name": "1", "pg_desc": "tp"}]
    trace = loaded([kernel("k", 0, 1)], distributedInfo={"pg_config": form(config)}, world_size=1)
    assert trace.groups[["group", "group_desc", "group_size", "group_ranks"]].to_numpy().tolist() == [
        ["0", "default_pg", 2, "[0,1]"],
        ["1", "tp", -1, None],
    ]


@pytest.mark.parametrize(
    "events",
    [
        [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}],
        [],
    ],
)
def test_nothing_but_metadata_is_an_error(loaded, events):
    with pytest.raises(UnreadableInput, match="no usable events"):
        loaded(events)


def test_traceevents_missing_is_an_error(tmp_path):
    with pytest.raises(UnreadableInput, match=r"t\.json"):
        c3prof.load(written(tmp_path / "t.json", {"schemaVersion": 1}))


def test_rank_from_the_file_name_is_told(tmp_path):
    trace = c3prof.load(written(tmp_path / "trace_rank-12.json", [kernel("k", 0, 1)]))
    assert trace.rank_numbers == [12]
    assert [w.code for w in trace.warnings] == ["rank-from-name"]


def test_rank_and_device_differ(loaded):
    trace = loaded([kernel("k", 0, 1, device=5)], rank=2, world_size=1, deviceProperties=[{"id": 5, "name": "H100", "numSms": 132}])
    assert trace.activities["device"].tolist() == [5]
    assert trace.devices[(2, 5)]["numSms"] == 132
    assert trace.ranks["device_name"].tolist() == ["H100"]


def test_counters(loaded):
    samples = [{"ph": "C", "name": "GPU 0 power", "pid": 0, "tid": 0, "ts": t, "args": {"W": w}} for t, w in ((1, 300), (2, 310.5))]
    trace = loaded([kernel("k", 0, 1), *samples])
    assert trace.counters[["at_ns", "name", "value"]].to_numpy().tolist() == [[1000, "GPU 0 power", 300.0], [2000, "GPU 0 power", 310.5]]


def test_hostile_counters_do_no_harm(loaded):
    odd = [{"ph": "C", "name": "c", "ts": 1, "args": args} for args in ([1, 2], "x", {"a": [1]}, {}, {"a": True})]
    assert len(loaded([kernel("k", 0, 1), *odd]).counters) <= 1


# ---- collectives ----


def test_arguments_of_a_collective(loaded):
    arguments = {
        "Collective name": "reduce_scatter_tensor_coalesced",
        "Process Group Name": "7",
        "Process Group Description": "dp",
        "Process Group Ranks": "[0, 2, 4]",
        "Group size": 3,
        "dtype": "BFloat16",
        "In msg nelems": 300,
        "Out msg nelems": 100,
        "Seq": 41,
    }
    trace = loaded([op("record_param_comms", 0, 50, **arguments), *launched(kernel("ncclDevKernel_ReduceScatter", 100, 110), 10)])
    [row] = trace.collectives.to_dict("records")
    expected = {
        "collective": "reduce_scatter", "group": "7", "group_desc": "dp", "group_ranks": "[0, 2, 4]", "group_size": 3,
        "dtype": "BFloat16", "in_elements": 300, "out_elements": 100, "seq": 41, "size_bytes": 600, "launch_end_ns": 11_000,
        "evidence": "metadata", "order": 0, "kernels": 1,
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "dtype", "expected"),
    [
        ("send", 10, 0, "Float", 40),
        ("recv", 0, 10, "Float", 40),
        ("_allgather_base", 10, 80, "Half", 160),
        ("allreduce", 10, 10, "Mystery", -1),
        ("allreduce", 10, 10, "Double", 80),
    ],
)
def test_message_sizes(loaded, name, inputs, outputs, dtype, expected):
    arguments = {"Collective name": name, "In msg nelems": inputs, "Out msg nelems": outputs, "dtype": dtype}
    assert loaded([kernel("nccl", 0, 1, **arguments)]).collectives["size_bytes"].tolist() == [expected]


def test_kinds_and_sizes_from_torchs_annotation_when_there_are_no_arguments(loaded):
    events = [
        op("record_param_comms", 0, 50),
        annotation("nccl:all_to_all", 5, 45, **{"Input Dims": [[1000]], "Input type": ["float"]}),
        *launched(kernel("ncclKernel_SendRecv_RING", 100, 110), 10),
    ]
    assert loaded(events).collectives[["collective", "size_bytes", "evidence"]].astype(str).to_numpy().tolist() == [
        ["all_to_all", "4000", "metadata"]
    ]


def test_collectives_without_any_device(loaded):
    # two threads: the caller enqueues, gloo's own thread runs; the operator knows that the second is a reduce_scatter
    events = [
        op("c10d::allreduce_", 0, 10),
        op("c10d::_reduce_scatter_base_", 12, 20),
        op("aten::mm", 21, 90),
        annotation("gloo:all_reduce", 5, 40, thread=2, **{"Input Dims": [[8]], "Input type": ["float"]}),
        annotation("gloo:all_reduce", 40, 80, thread=2, **{"Input Dims": [[16]], "Input type": ["float"]}),
    ]
    trace = loaded(events)
    rows = trace.collectives[["device", "collective", "start_ns", "end_ns", "launch_end_ns", "size_bytes", "evidence"]]
    assert rows.astype(object).to_numpy().tolist() == [
        [-1, "all_reduce", 5_000, 40_000, 10_000, 32, "annotation"],
        [-1, "reduce_scatter", 40_000, 80_000, 20_000, 64, "annotation"],
    ]
    assert trace.ops["is_comm"].tolist() == [True, True, False]


def test_order_counts_by_group_in_order_of_launch(loaded):
    events = [
        *launched(nccl("allreduce", 50, 60, group="a"), 0),
        *launched(nccl("allreduce", 10, 20, group="b", stream=21), 2),
        *launched(nccl("allreduce", 70, 80, group="a"), 4),
    ]
    rows = loaded(events).collectives[["group", "order"]].astype(str).to_numpy().tolist()
    assert rows == [["b", "0"], ["a", "0"], ["a", "1"]]


def test_frames_are_sorted_as_declared(shared_traces):
    trace = c3prof.load(shared_traces / "a100_ddp_rank3of8.json.gz")
    a = trace.activities
    assert np.array_equal(np.lexsort((a["start_ns"], a["stream"], a["device"])), np.arange(len(a)))
    assert (np.diff(trace.collectives["start_ns"]) >= 0).all()
