"""What profile() is asked, by arguments and by the environment; and who the process is."""

import pytest

from c3prof.collectors.environment import environment
from c3prof.collectors.identity import identity
from c3prof.collectors.options import Options, overridden, switched_off
from c3prof.collectors.window import Window
from c3prof.errors import WrongSettings


def test_the_environment_overrides_every_option() -> None:
    variables = {
        "C3PROF_DIR": "elsewhere",
        "C3PROF_KINETO": "wait=6, warmup=1,active=7,repeat=1",
        "C3PROF_CALIBRATE": "3",
        "C3PROF_POWER": "0",
        "C3PROF_STALL_S": "5",
        "C3PROF_STRICT": "1",
        "C3PROF_RANKS": "0-3",
        "C3PROF_TRIGGER": "yes",
        "C3PROF_LOCAL_DIR": "/scratch",
        "C3PROF_FLUSH_S": "2.5",
        "C3PROF_SHAPES": "off",
    }
    found = overridden(Options("here"), variables)
    assert found == Options(
        "elsewhere",
        kineto=Window(6, 1, 7, 1),
        calibrate=3,
        power=False,
        stall_s=5.0,
        strict=True,
        ranks="0-3",
        trigger=True,
        local_dir="/scratch",
        flush_s=2.5,
        shapes=False,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("KINETO", "wait=x"), ("KINETO", "hurry=1"), ("STRICT", "maybe"), ("CALIBRATE", "1"), ("RANKS", "a-b"), ("FLUSH_S", "soon")],
)
def test_a_variable_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(WrongSettings, match=f"C3PROF_{name}|{'ranks' if name == 'RANKS' else 'calibrate'}"):
        overridden(Options("here"), {f"C3PROF_{name}": value})


def test_off_is_off() -> None:
    assert all(switched_off({"C3PROF": value}) for value in ("0", "off", "FALSE", "no"))
    assert not any(switched_off(variables) for variables in ({}, {"C3PROF": "1"}, {"C3PROF": ""}))


def test_windows_follow_calibration_and_ranks() -> None:
    assert Options("d").plan(5) is not None
    assert Options("d", ranks="0-3").plan(4) is None
    assert Options("d", kineto=None).plan(0) is None
    assert Options("d", kineto=None, trigger=True).plan(0) is not None
    plan = Options("d", calibrate=3).plan(0)
    assert plan is not None
    assert plan.active == 7
    assert Options("d", ranks="4-7").leads(4)
    assert not Options("d", ranks="4-7").leads(0)


def test_settings_that_contradict_are_refused_at_once() -> None:
    with pytest.raises(WrongSettings, match="use Window"):
        Options("d", calibrate=3, kineto=Window(1, 1, 2, 1))
    with pytest.raises(WrongSettings, match="comms"):
        Options("d", calibrate=3, comms=False)


@pytest.mark.parametrize(("world", "seconds"), [(1, 1.0), (64, 1.0), (128, 2.0), (10_000, 30.0)])
def test_large_jobs_write_less_often(world: int, seconds: float) -> None:
    assert Options("d").flush_interval(world) == seconds


LAUNCHERS = [
    (
        {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "j7", "TORCHELASTIC_RESTART_COUNT": "2"},
        (3, 8, 1, "j7", 2),
    ),
    ({"SLURM_PROCID": "9", "SLURM_NTASKS": "16", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "4711"}, (9, 16, 1, "4711", 0)),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, (2, 4, 0, None, 0)),
    ({}, (0, 1, None, None, 0)),
    ({"RANK": "", "SLURM_PROCID": "5", "SLURM_NTASKS": "6"}, (5, 6, None, None, 0)),
]


@pytest.mark.parametrize(("variables", "expected"), LAUNCHERS)
def test_who_am_i(variables: dict[str, str], expected: tuple[object, ...]) -> None:
    who = identity(variables)
    assert (who.rank, who.world_size, who.local_rank, who.job, who.restart) == expected


def test_only_what_is_on_the_list_leaves_the_environment() -> None:
    given = {
        "NCCL_ALGO": "Ring",
        "TORCH_NCCL_BLOCKING_WAIT": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "AWS_SECRET_ACCESS_KEY": "x",
        "HOME": "/root",
        "MY_NCCL_X": "1",
    }
    assert environment(given) == {"CUDA_VISIBLE_DEVICES": "0", "NCCL_ALGO": "Ring", "TORCH_NCCL_BLOCKING_WAIT": "1"}
