"""The sample runs: what is shipped is what make.py makes, and the analysis finds the truth beside it."""

import json

import pytest

import c3prof
from c3prof import sample_traces
from c3prof.errors import WrongSettings
from c3prof.sample_traces import make


def test_what_is_shipped_is_what_is_made(tmp_path):
    make.write(tmp_path)
    shipped = make.Path(sample_traces.__file__).parent
    made = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert made
    for path in made:
        ours, theirs = (tmp_path / path).read_bytes(), (shipped / path).read_bytes()
        if path.suffix == ".gz":  # another zlib may compress differently
            ours, theirs = make.gzip.decompress(ours), make.gzip.decompress(theirs)
        assert ours == theirs, f"{path} is out of date: python -m c3prof.sample_traces.make"


def test_every_story_is_named():
    assert set(sample_traces.SAMPLES) == set(make.STORIES)


@pytest.mark.parametrize("name", sample_traces.SAMPLES)
def test_the_analysis_finds_the_truth(name):
    folder = make.Path(sample_traces.path_of(name))
    truth = json.loads(folder.with_suffix(".truth.json").read_text(encoding="utf-8"))["overlap"]
    frame = c3prof.analyze(c3prof.load(folder)).tables["overlap"].frame
    found = frame[list(truth[0])].to_dict("records")
    assert found == truth


def test_an_unknown_sample_names_the_known_ones():
    with pytest.raises(WrongSettings, match="ddp, fsdp"):
        sample_traces.path_of("nope")
