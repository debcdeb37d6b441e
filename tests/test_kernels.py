"""Who is communication and of which class a kernel is: real names, look-alikes, and the user's own rules."""

import gzip
import json
from pathlib import Path

import pytest

from c3prof import kernels
from c3prof.errors import WrongSettings

COMMUNICATION = {
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)": "all_reduce",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "all_reduce",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "nccldevkernel_allgather_ring_ll": "all_gather",
    "void ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)": "send_recv",
    "ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)": "all_gather",
    "ncclDevKernel_Reduce_Sum_f32_RING_LL": "reduce",
    "ncclDevKernel_Broadcast_RING_LL": "broadcast",
    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)": "unknown",
    "void rcclGenericKernel<4, false>(ncclDevKernelArgsStorage<4096ul>)": "unknown",
    "rcclGenericKernel<>": "unknown",
    "mscclKernel_Sum_float_Simple": "unknown",
    "void mscclpp::allreduce<int>()": "all_reduce",
    "oneccl_allreduce_pcie": "all_reduce",
    "allreduce_medium": "all_reduce",
    "nvshmemx_barrier_all_on_stream": "barrier",
    "void nvshmemi_transfer_kernel<1>": "unknown",
    "void deep_ep::internode::dispatch<false, 8>(int4*)": "all_to_all",
    "void deep_ep::internode_ll::combine<false>(int4*)": "all_to_all",
    "void ep::intranode::combine<bf16>(bf16*)": "all_to_all",
    "void ep::internode::dispatch<8>(int4*)": "all_to_all",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)": "all_reduce",
    "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)": "all_reduce",
    "two_shot_all_reduce_kernel_inplace": "all_reduce",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)": "all_reduce",
    "void sglang::cross_device_reduce_2stage<half, 4>(sglang::RankData*)": "all_reduce",
    "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half,4>, true>, __half>()": "all_reduce",
    "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(AllReduceParams)": "all_reduce",
    "void allreduce_fusion_kernel_twoshot_sync<(flashinfer::AllReduceFusionPattern)0, bf16, 8>(AllReduceFusionParams<bf16>)": "all_reduce",
    "void moe_alltoall::moeA2ADispatchKernel<8>()": "all_to_all",
}

FUSED = {
    "void allreduce_fusion_kernel_oneshot_lamport<(flashinfer::AllReduceFusionPattern)1, bf16, 8>(AllReduceFusionParams<bf16>)": "norm",
    "allreduce_fusion_kernel_twoshot_sync": "norm",
    "ag_gemm_kernel": "gemm",
    "gemm_rs": "gemm",
    "gemm_reduce_scatter_kernel": "gemm",
    "fused_all_gather_matmul_kernel": "gemm",
    "void cutlass::device_kernel<bytedance::flux::Sm90AgGemm>(Params)": "gemm",
    "fp8_mega_moe_kernel": "gemm",
}

LOOK_ALIKES = [
    "void cub::DeviceSelectSweepKernel<cub::DispatchSelectIf<long*>::PtxSelectIfPolicyT>(long*)",
    "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, int>::PtxReduceByKeyPolicy>(long*)",
    "void at::native::elementwise_broadcast_kernel_launcher<float>(float*)",
    "broadcast_kernel_launcher",
    "void softmax_kernel<ClusterReduce<4>>(float*)",
    "ClusterReduce",
    "one_shot_sort_kernel",
    "my_one_shot_gelu",
    "block_all_reduce_sum_f32_kernel",
    "void softmax_kernel<BlockAllReduce<Sum>>(float*)",
    "triton_poi_fused_all_gather_into_tensor_out_cat_2",
    "triton_red_fused_wait_tensor_sum_4",
    "void c10d::checkForNaN<float>(float*, unsigned long)",
    "void at::native::vectorized_elementwise_kernel<4, c10d::ncclFunctor<float>>(int)",
]

CLASSES = {
    "Cijk_Alik_Bljk_BBS_BH_MT16x16x256_MI16x16x1_SN": "gemm",
    "nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN": "gemm",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)": "gemm",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn": "gemm",
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)": "gemm",
    "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(cublasGemvParams<float>)": "gemm",
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1": "gemm",
    "fused_moe_kernel": "gemm",
    "triton_tem_fused_mm_7": "gemm",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>(Flash_fwd_params)": "attention",
    "_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_16FlashAttnFwdSm90": "attention",
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext": "attention",
    "kernel_unified_attention_2d": "attention",
    "triton_tem_fused_flex_attention_3": "attention",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_execute_kernel_cudnn_infer": "convolution",
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_28GridwiseGemm": "convolution",
    "igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32": "convolution",
    "miopenSp3AsmConv_v30_2_1_gfx9_fp16_dot2": "convolution",
    "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1": "convolution",
    "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<float>)": "norm",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)": "norm",
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePass": "norm",
    "MIOpenBatchNormFwdTrainSpatial": "norm",
    "triton_per_fused__to_copy_mean_mul_pow_rsqrt_3": "norm",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)": "elementwise",
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)": "elementwise",
    "triton_poi_fused_add_mul_3": "elementwise",
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float>(float*)": "elementwise",
    "void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>(unsigned char const*)": "elementwise",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>> >": "reduction",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)": "reduction",
    "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*>(int*)": "reduction",
    "triton_red_fused_sum_2": "reduction",
    "void split_embedding_codegen_forward_unweighted_kernel<float, float>(at::GenericPackedTensorAccessor<float>)": "embedding",
    "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>(int*)": "embedding",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float>>": "optimizer",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)": "optimizer",
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>": "memory",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>(float*)": "memory",
    "batched_transpose_32x32_half": "memory",
    "void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)": "memory",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)": "memory",
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(__nv_bfloat16 const*)": "memory",
    "at::cuda::(anonymous namespace)::spin_kernel(long)": "other",
    "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(int*)": "other",
}


def verdict(name: str, rules: kernels.Rules | None = None) -> tuple[str, str]:
    found = (rules or kernels.rules()).verdicts([name])
    return found.classes[0], found.kernel_classes[0]


@pytest.mark.parametrize("name", COMMUNICATION)
def test_communication_of_every_library(name: str) -> None:
    assert verdict(name) == ("comm", COMMUNICATION[name])


@pytest.mark.parametrize("name", FUSED)
def test_kernels_that_compute_and_communicate(name: str) -> None:
    assert verdict(name) == ("fused", FUSED[name])


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_names_that_only_look_like_communication(name: str) -> None:
    assert verdict(name)[0] == "compute"


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_compute(name: str) -> None:
    assert verdict(name) == ("compute", CLASSES[name])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("allreduce", "all_reduce"),
        ("AllReduce", "all_reduce"),
        ("ALLREDUCE", "all_reduce"),
        ("c10d::allreduce_", "all_reduce"),
        ("nccl:all_reduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("nccl:_all_gather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("alltoall_base_", "all_to_all"),
        ("broadcast_oop", "broadcast"),
        ("_reduce_oop", "reduce"),
        ("gather", "gather"),
        ("c10d::scatter_", "scatter"),
        ("gloo:send", "send"),
        ("c10d::recv_any_source_", "recv"),
        ("SendRecv", "send_recv"),
        ("batch_isend_irecv", "send_recv"),
        ("monitored_barrier", "barrier"),
        ("wait", "unknown"),
        ("", "unknown"),
    ],
)
def test_collective_kinds_in_every_spelling(text: str, kind: str) -> None:
    assert kernels.collective_kind(text) == kind
    assert kind in kernels.COLLECTIVES


def test_operators_and_calls() -> None:
    communication = ["record_param_comms", "c10d::allreduce_", "_c10d_functional::all_reduce", "nccl:all_reduce", "gloo:send"]
    assert [kernels.is_comm_op(name) for name in communication] == [True] * 5
    assert not any(
        map(kernels.is_comm_op, ["aten::mm", "torch::distributed::reducer::mul_out", "symm_mem::fused_all_gather_matmul", "Redistribute"])
    )
    assert kernels.is_recorded_op("nccl:all_reduce")
    assert kernels.is_comm_op("symm_mem::multimem_all_reduce_")
    assert not kernels.is_recorded_op("symm_mem::multimem_all_reduce_")
    assert kernels.is_wait_op("_c10d_functional::wait_tensor")
    assert not kernels.is_wait_op("_c10d_functional::all_reduce")
    assert not kernels.is_wait_op("aten::wait")
    blocking = [
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaEventSynchronize",
        "hipDeviceSynchronize",
        "cuStreamSynchronize_ptsz",
        "cudaMemcpy",
    ]
    assert [kernels.is_blocking_call(name) for name in blocking] == [True] * 6
    assert not any(
        map(
            kernels.is_blocking_call,
            ["cudaStreamWaitEvent", "cudaMemcpyAsync", "cuMemcpyDtoHAsync_v2", "cudaLaunchKernel", "cudaEventQuery"],
        )
    )


def rules_file(folder: Path, text: str) -> str:
    path = folder / "rules.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_users_rules_come_first_and_replace_by_entry(tmp_path: Path) -> None:
    path = rules_file(
        tmp_path,
        """
        [[rule]]
        entry = "ours"
        class = "comm"
        kernel_class = "all_gather"
        words = ["acme_exchange*"]
        [[rule]]
        entry = "custom-all-reduce"
        class = "compute"
        regex = "^never$"
        """,
    )
    mine = kernels.rules(path)
    assert verdict("void acme::exchangeKernel<4>()") == ("compute", "other")
    assert verdict("void acme::exchangeKernel<4>()", mine) == ("comm", "all_gather")
    assert verdict("cross_device_reduce_1stage", mine)[0] == "compute"
    assert verdict("ncclDevKernel_Generic", mine) == ("comm", "unknown")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule", "not TOML"),
        ("[other]\nx = 1", "expected a list of \\[\\[rule\\]\\]"),
        (
            '[[rule]]\nentry = "a"\nclass = "network"\nwords = ["x"]',
            "rule 1 \\('a'\\): class is 'network', expected compute, comm or fused",
        ),
        (
            '[[rule]]\nentry = "a"\nclass = "comm"\nkernel_class = "gemm"\nwords = ["x"]',
            "kernel_class is 'gemm', expected one of reduce_scatter",
        ),
        ('[[rule]]\nentry = "a"\nclass = "comm"', "one of words, head, regex is needed"),
        ('[[rule]]\nclass = "comm"\nwords = ["x"]', "no entry"),
        ('[[rule]]\nentry = "a"\nclass = "comm"\nregex = "("', "is not a regular expression"),
        ('[[rule]]\nentry = "a"\nclass = "comm"\nword = ["x"]', "unknown key 'word'"),
        ('[[rule]]\nentry = "a"\nclass = "comm"\nwords = "x"', "words is 'x', expected a list"),
        ('[[rule]]\nentry = "a"\nclass = "comm"\nwords = ["*"]', "expected a list of words"),
    ],
)
def test_a_bad_rules_file_is_named_with_its_entry(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WrongSettings, match=message) as caught:
        kernels.rules(rules_file(tmp_path, text))
    assert "rules.toml" in str(caught.value)


def test_a_missing_rules_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongSettings, match=r"absent\.toml: no such file"):
        kernels.rules(str(tmp_path / "absent.toml"))


def test_real_names_are_classified(shared_traces: Path) -> None:
    """At most one in twenty distinct kernel names of the real files is of no class."""
    names = set()
    for path in sorted(shared_traces.glob("*.json.gz")) + sorted(shared_traces.glob("v100_dlrm_8ranks/*0.json.gz")):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        names |= {event["name"] for event in events if str(event.get("cat", "")).lower() == "kernel"}
    found = kernels.rules().verdicts(sorted(names))
    assert len(names) > 200
    assert found.kernel_classes.count("other") <= len(names) / 20
