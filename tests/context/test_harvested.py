import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.context.harvested import ScoreScale, read_harvest
from likewise.context.workspace import ContextError

ROWS = {
    "sentence1": ["a", "b", "c"],
    "sentence2": ["x", "y", "z"],
    "score": [0.1, 0.2, 0.3],
    "split": ["train", "dev", "train"],
}


def write(folder, name="shard-0.parquet", **changes):
    folder.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.table(ROWS | changes), folder / name)
    return folder


def test_shards_are_read_in_order_of_their_names_and_split(tmp_path):
    folder = write(tmp_path / "h", "shard-1.parquet", score=pa.array([1, 2, 3], pa.int64()))
    write(folder, "shard-0.parquet", split=["test", "train", "train"])
    write(folder, ".shard-2.parquet.part")
    write(folder, ".shard-2.parquet")
    harvest = read_harvest(folder)
    assert harvest.splits["train"].texts() == (["b", "c", "a", "c"], ["y", "z", "x", "z"])
    assert harvest.splits["train"].scores.tolist() == [0.2, 0.3, 1.0, 3.0]
    assert (len(harvest.splits["dev"]), len(harvest.splits["test"])) == (1, 1)
    assert [source.rpartition("/")[2] for source in harvest.sources] == ["shard-0.parquet", "shard-1.parquet"]
    assert "6 scored pairs in 2 shards (4 train, 1 dev, 1 test)" in str(harvest)


def test_the_parts_of_several_machines_are_one_harvest(tmp_path, says):
    whole = write(tmp_path / "whole", "shard-0.parquet")
    write(whole, "shard-1.parquet", score=[0.4, 0.5, 0.6])
    parts = tmp_path / "parts"
    write(parts / "part-2-of-2", "shard-1.parquet", score=[0.4, 0.5, 0.6])
    write(parts / "part-1-of-2", "shard-0.parquet")
    write(parts / ".unfinished" / "result", "shard-2.parquet")
    assert read_harvest(parts).sha256 == read_harvest(whole).sha256
    write(parts / "part-1-of-3", "shard-0.parquet")
    with says(ContextError):
        read_harvest(parts)


def test_the_hash_is_of_what_is_in_the_shards(tmp_path):
    one, same, other = write(tmp_path / "1"), write(tmp_path / "2"), write(tmp_path / "3", score=[0.1, 0.2, 0.4])
    assert read_harvest(one).sha256 == read_harvest(same).sha256 != read_harvest(other).sha256


@pytest.mark.parametrize(
    "changes",
    [
        {"score": [0.1, float("nan"), 0.3]},
        {"score": [0.1, 0.2, None]},
        {"score": ["a", "b", "c"]},
        {"split": ["train", "dev", "valid"]},
        {"sentence2": ["x", None, "z"]},
        {"split": ["dev", "dev", "dev"]},
    ],
)
def test_broken_values_are_named_with_file_and_row(tmp_path, changes, says):
    with says(ContextError):
        read_harvest(write(tmp_path / "h", **changes))


def test_broken_files(tmp_path, says):
    with says(ContextError):
        read_harvest(tmp_path / "h")
    (tmp_path / "h").mkdir()
    with says(ContextError):
        read_harvest(tmp_path / "h")
    (tmp_path / "h" / "shard-0.parquet").write_bytes(b"PAR1 cut short")
    with says(ContextError):
        read_harvest(tmp_path / "h")
    pq.write_table(pa.table({"sentence1": ["a"], "score": [1.0]}), tmp_path / "h" / "shard-0.parquet")
    with says(ContextError):
        read_harvest(tmp_path / "h")


def test_cosine_leaves_scores_as_they_are(says):
    scale = ScoreScale.fit("cosine", np.array([-0.4, 0.9]))
    assert scale.to_target(np.array([-0.4, 0.9])).tolist() == [-0.4, 0.9]
    with says(ContextError):
        ScoreScale.fit("cosine", np.array([-3.5, 0.0]))


def test_stretch_by_hand():
    """0, 1, ... 100 have their 1% and 99% quantiles at 1 and 99."""
    scale = ScoreScale.fit("stretch", np.arange(101.0))
    assert (scale.low, scale.high) == (1.0, 99.0)
    assert scale.to_target(np.array([1.0, 50.0, 99.0, 0.0])) == pytest.approx([0, 0.5, 1, -1 / 98])
    # Cut at -1 and 1.
    assert scale.to_target(np.array([-500.0, 500.0])).tolist() == [-1.0, 1.0]
    assert scale.from_target(np.array([0.0, 0.25, 1.0])) == pytest.approx([1.0, 25.5, 99.0])


def test_equal_scores_teach_nothing(says):
    with says(ContextError):
        ScoreScale.fit("stretch", np.full(50, 0.97))
