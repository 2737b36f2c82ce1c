"""The profile of a step: each kernel is of the kind that its work is, whoever it is done for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.profile import OPTIMIZER, Profile, kind_of, profile_of, profile_step
from qkv.config import Config
from qkv.data.batch import PairBatch
from qkv.prepare import Prepared
from qkv.training.feeding import batches_of
from tests import toy
from tests.toy import QUICK


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTT", "matrix products"),
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>",
            "matrix products",
        ),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", "attention"),
        ("fmha_cutlassB_bf16_aligned_128x64_k64_dropout_sm80", "attention"),
        ("void pytorch_flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<cutlass::bfloat16_t>>", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64", "attention"),
        ("_attend_backward", "attention"),
        ("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>", OPTIMIZER),
        ("void at::native::multi_tensor_apply_kernel<CopyFunctor>(copy)", OPTIMIZER),
        ("void at::native::CatArrayBatchedCopy", "joining and copying"),
        ("void at::native::vectorized_elementwise_kernel<4>", "all else"),
    ],
)
def test_a_kernel_is_of_the_kind_that_its_work_is(kernel: str, kind: str) -> None:
    assert kind_of(kernel) == kind


def test_products_of_the_optimizer_are_the_optimizers() -> None:
    step = {"nvjet_large": 30.0, "nvjet_square": 5.0, "multi_tensor_apply": 1.0, "elementwise": 3.0}
    # What took a little longer alone than in the step is all theirs; what the step does not have is not its.
    profiled = Profile(step, {"nvjet_square": 4.0, "elementwise": 3.5, "multi_tensor_apply": 0.5, "fill": 9.0})
    assert profiled.by_kind() == {"matrix products": 31.0, OPTIMIZER: 8.0}
    assert sum(profiled.by_kind().values()) == sum(step.values())


def some(toy_data: Path, optimizer: str) -> tuple[Config, PairBatch, int]:
    prepared = Prepared.open(toy_data)
    config = QUICK.with_changes(training={"optimizer": optimizer})
    return config, batches_of(config, prepared, "train").of_step(0), prepared.tokenizer().size


def test_only_muon_has_products_of_its_own(toy_data: Path) -> None:
    with toy.one_thread():
        muon, adam = (profile_of(*some(toy_data, name)) for name in ("muon", "adam"))
    # Its iteration adds products of products, which nothing else in a step does.
    # How much of them is a matter of time, which other work on the machine may stretch in the one or in the other.
    assert 0 < muon.own()["aten::baddbmm"] <= muon.step["aten::baddbmm"]
    assert "aten::baddbmm" not in adam.own()
    assert not {"aten::baddbmm", "aten::bmm", "aten::mm"} & adam.optimizers.keys()
    for profiled in (muon, adam):
        assert "aten::embedding" in profiled.step.keys() - profiled.optimizers.keys()


def test_a_profile_is_printed_with_what_the_optimizers_take(toy_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with toy.one_thread():
        profile_step(*some(toy_data, "muon"))
    *kinds, whole, own = capsys.readouterr().out.splitlines()
    assert sum(float(line.split()[0]) for line in kinds) == pytest.approx(
        float(whole.split()[0]), abs=0.005 * len(kinds) + 0.005
    )
    assert any(line.endswith(OPTIMIZER) for line in kinds)
    assert 0 < float(own.split()[0]) < float(whole.split()[0])
