"""Files that somebody else made: none of them runs code, and none reaches outside its folder."""

import json
import pickle
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

import likewise
from likewise.context.index import Retrieval
from likewise.context.workspace import ContextError
from likewise.errors import LikewiseError
from likewise.runs.job import JobError, work_of
from likewise.runs.whole_files import Parts, SavedStates, checksum, seal

STEPS = {"batch_size": 8, "max_steps": 4, "eval_steps": 1, "held_out": 40, "precision": "fp32", "quiet": True}


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture(scope="module")
def _stopped(corpus_file, tiny_base, stopping_after, tmp_path_factory):
    out = tmp_path_factory.mktemp("stopped") / "run"
    with stopping_after(2):
        likewise.train("simcse", corpus_file, base=tiny_base, out=out, **STEPS)
    return work_of(out)


@pytest.fixture
def out(_stopped, tmp_path):
    """The folder of a run that was stopped after its second step; a copy that a test may change."""
    shutil.copytree(_stopped, work_of(tmp_path / "run"))
    return tmp_path / "run"


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"])
def test_a_checkpoint_from_elsewhere_runs_nothing(name, out, corpus_file, tiny_base, tmp_path, says):
    (checkpoint,) = (work_of(out) / "checkpoints").glob("checkpoint-2")
    assert (checkpoint / name).is_file()
    torch.save(Hostile(tmp_path / "ran"), checkpoint / name)
    seal(checkpoint)  # with checksums that fit
    read = name != "training_args.bin"
    with says(JobError) if read else nullcontext():
        likewise.train("simcse", corpus_file, base=tiny_base, out=out, **STEPS)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth"])
def test_a_state_of_another_form_is_named(name, out, corpus_file, tiny_base, says):
    checkpoint = work_of(out) / "checkpoints" / "checkpoint-2"
    torch.save([torch.zeros(1)], checkpoint / name)
    seal(checkpoint)
    with says(JobError):
        likewise.train("simcse", corpus_file, base=tiny_base, out=out, **STEPS)


def test_a_state_from_elsewhere_runs_nothing(tmp_path):
    SavedStates(tmp_path / "states").save(1, {"step": 1})
    parts = Parts(tmp_path / "states")
    with parts.new("000000002.pt") as path:
        torch.save({"model": Hostile(tmp_path / "ran")}, path)
    assert SavedStates(tmp_path / "states").load() == (1, {"step": 1})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("line", ["3", '{"name": 3}', '{"name": "../secret"}', '{"name": "/secret"}', '{"name": null}'])
def test_parts_from_elsewhere_name_nothing_outside(line, tmp_path):
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "parts.jsonl").write_text(
        line.replace("}", f', "checksum": "{checksum(tmp_path / "secret")}"}}')
    )
    assert len(Parts(tmp_path / "parts")) == 0


def test_arrays_of_an_index_are_not_unpickled(tmp_path, says):
    for name in ("starts", "chunks", "weights", "idf", "shape"):
        with (tmp_path / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array(file, np.array([Hostile(tmp_path / "ran")], dtype=object), allow_pickle=True)
    with says(ContextError, hidden=r"\(.*\)"):
        Retrieval(tmp_path)
    (tmp_path / "starts.npy").write_bytes(pickle.dumps(Hostile(tmp_path / "ran")))
    with says(ContextError, hidden=r"\(.*\)"):
        Retrieval(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_graph_reads_no_file_outside_its_folder(tiny_model, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from likewise.inference.engines.onnx_engine import FILE, OnnxEngine

    (tmp_path / "secret").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    tensor = onnx.TensorProto(name="weights", data_type=onnx.TensorProto.FLOAT, dims=[4], data_location="EXTERNAL")
    tensor.external_data.add(key="location", value="../secret")
    output = onnx.helper.make_tensor_value_info("sentence_embedding", onnx.TensorProto.FLOAT, [4])
    node = onnx.helper.make_node("Identity", ["weights"], ["sentence_embedding"])
    graph = onnx.helper.make_graph([node], "graph", [], [output], [tensor])
    (tmp_path / "engine").mkdir()
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "engine" / FILE).write_bytes(model.SerializeToString())
    with pytest.raises(Exception, match=r"(?i)external|outside|escape|secret"):
        OnnxEngine(tmp_path / "engine", "fp32", 2).open(1)


def test_names_in_the_table_of_a_comparison_are_text(tmp_path, saved_model):
    folder, out = tmp_path / "<img src=x onerror=alert(2)>", tmp_path / "out"
    shutil.copytree(saved_model, folder)
    (tmp_path / "q.tsv").write_text("".join(f"{n % 5}\tthe cat {n}\ta dog {n}\n" for n in range(12)))
    methods = [f"'{folder}' label='<script>alert(1)</script>'", "'/no/<b>model' label=none"]
    likewise.compare(methods, out=out, tasks=f"pairs:{tmp_path / 'q.tsv'}", quiet=True)
    text = (out / "comparison.md").read_text(encoding="utf-8")
    assert "&lt;script>" in text
    assert "&lt;b>model" in text
    assert not any(tag in text for tag in ("<script", "<img", "<b>"))


def test_a_record_that_is_not_one_is_refused_in_one_sentence(tmp_path, corpus_file, tiny_base, says):
    for record in ("[]", "3", '{"plan": {}, "files": ["../../etc/passwd"]}', json.dumps({"files": "x"})):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "likewise.json").write_text(record)
        with says(LikewiseError, hidden=r"(?<=damaged )\(.*\)"):
            likewise.train("simcse", corpus_file, base=tiny_base, out=tmp_path / "run", **STEPS)


def test_the_sample_would_run(tmp_path):
    pickle.loads(pickle.dumps(Hostile(tmp_path / "ran"))).close()
    assert (tmp_path / "ran").exists()
