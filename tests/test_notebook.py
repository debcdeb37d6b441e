"""The example notebook runs, and shows what it says."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.filterwarnings("default")  # the kernel's messaging warns about its own event loops
def test_the_example_notebook_runs(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(ROOT / "docs" / "example.ipynb", as_version=4)
    nbformat.validate(notebook)
    done = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    outputs = {cell.source.splitlines()[0]: cell.outputs for cell in done.cells if cell.cell_type == "code"}
    assert "<h4>Trace of rank 0, 1, 2, 3</h4>" in outputs["import c3prof"][0].data["text/html"]
    assert "exposed_ns [ns]" in outputs['report["overlap"]'][0].data["text/html"]
    assert outputs['row = report["overlap"].frame.iloc[0]'][0].data["text/plain"] in ("True", "np.True_")
    assert "The others wait for rank 2" in outputs["from c3prof.analysis.headline import headline"][0].text
