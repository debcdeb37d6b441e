"""The adapters in the frameworks that they are for, where these are installed."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the frameworks train with torch")

from c3prof.collectors import adapters  # noqa: E402  # torch decides first
from tests.collectors.ranks import lines, manifest  # noqa: E402  # as above

pytestmark = pytest.mark.filterwarnings("ignore")  # the frameworks' own


def test_hugging_face(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="transformers' Trainer needs accelerate")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]  # torch is Any to the type checker
        """What the Trainer asks of a model: a loss."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def forward(self, x: object) -> dict[str, object]:
            return {"loss": self.linear(x).square().mean()}

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=5, per_device_train_batch_size=2, use_cpu=True, report_to=[], save_strategy="no"
    )
    data = [{"x": torch.ones(4)} for _ in range(16)]
    callback = adapters.hugging_face(tmp_path / "run", kineto=None)
    transformers.Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[callback]).train()
    assert [step["step"] for step in lines(tmp_path / "run", 0, "steps.jsonl")] == [0, 1, 2, 3, 4]
    assert manifest(tmp_path / "run", 0)["status"] == "complete"


def test_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]  # the base is only known where it is installed
        """A linear layer."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 1)

        def training_step(self, batch: object, _: int) -> object:
            return self.linear(batch).square().mean()

        def configure_optimizers(self) -> object:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = lightning.Trainer(
        max_steps=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        default_root_dir=str(tmp_path),
        callbacks=[adapters.lightning(tmp_path / "run", kineto=None)],
    )
    trainer.fit(Module(), torch.utils.data.DataLoader([torch.ones(4) for _ in range(16)], batch_size=2))
    assert [step["step"] for step in lines(tmp_path / "run", 0, "steps.jsonl")] == [0, 1, 2, 3, 4]
    assert manifest(tmp_path / "run", 0)["status"] == "complete"
