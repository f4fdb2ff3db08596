import io
import tarfile

import pyarrow
import pyarrow.parquet
import pytest

from likewise.data.downloads import DATASETS, HubFile, unpack

TAR = HubFile("a/b", "0" * 40, "all.tar", 1, ("senteval/STS", "senteval/SICK"))
NLI = HubFile(
    "a/b",
    "0" * 40,
    "pair-class/dev-00000-of-00001.parquet",
    1,
    tuple(f"senteval/AllNLI/{name}.dev" for name in ("s1", "s2", "labels")),
)


def tar(path, members):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    return path


@pytest.mark.parametrize("prefix", ["", "./", "downstream/", "a/b/"])
def test_folders_are_found_wherever_they_lie_in_the_archive(tmp_path, prefix):
    members = {
        f"{prefix}STS/STS12-en-test/STS.gs.txt": b"1\n",
        f"{prefix}SICK/SICK_trial.txt": b"x",
        f"{prefix}MR/rt.pos": b"other",
        f"{prefix}STS/._hidden": b"of a Mac",
    }
    unpack(TAR, tar(tmp_path / "all.tar", members), tmp_path / "work")
    found = sorted(str(p.relative_to(tmp_path / "work")) for p in (tmp_path / "work").rglob("*") if p.is_file())
    assert found == ["senteval/SICK/SICK_trial.txt", "senteval/STS/STS12-en-test/STS.gs.txt"]
    assert (tmp_path / "work/senteval/STS/STS12-en-test/STS.gs.txt").read_bytes() == b"1\n"


def test_nothing_climbs_out_of_the_folder_and_links_are_left_out(tmp_path):
    members = {"STS/a": b"1", "SICK/b": b"2", "STS/../../escaped": b"3", "STS/link": None}
    unpack(TAR, tar(tmp_path / "all.tar", members), tmp_path / "work")
    assert sorted(p.name for p in tmp_path.rglob("*") if not p.is_dir()) == ["a", "all.tar", "b"]


def test_a_damaged_or_wrong_archive_is_told(tmp_path, says):
    with says(ValueError):
        unpack(TAR, tar(tmp_path / "half.tar", {"STS/a": b"1"}), tmp_path / "work")
    whole = tar(tmp_path / "whole.tar.gz", {"STS/a": bytes(5000), "SICK/b": b"2"}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    with says(ValueError):
        unpack(TAR, tmp_path / "cut.tar", tmp_path / "work2")


@pytest.mark.parametrize("names", [None, ["contradiction", "neutral", "entailment"]])
def test_labelled_pairs_become_three_files_a_line_a_pair(tmp_path, names):
    table = pyarrow.table({"premise": ["a\nb", " c "], "hypothesis": ["d", "e"], "label": [0, -1]})
    if names:
        import json

        kept = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(kept)})
    pyarrow.parquet.write_table(table, tmp_path / "dev.parquet")
    unpack(NLI, tmp_path / "dev.parquet", tmp_path / "work")
    folder = tmp_path / "work/senteval/AllNLI"
    assert (folder / "s1.dev").read_text() == "a b\nc\n"
    assert (folder / "s2.dev").read_text() == "d\ne\n"
    assert (folder / "labels.dev").read_text() == ("contradiction" if names else "entailment") + "\n-\n"


def test_a_table_of_something_else_is_told(tmp_path, says):
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), tmp_path / "x.parquet")
    with says(ValueError):
        unpack(NLI, tmp_path / "x.parquet", tmp_path / "work")
    wrong = pyarrow.table({"premise": ["a"], "hypothesis": ["b"], "label": [3]})
    pyarrow.parquet.write_table(wrong, tmp_path / "y.parquet")
    with says(ValueError):
        unpack(NLI, tmp_path / "y.parquet", tmp_path / "work")


def test_the_table_pins_commits():
    files = [file for files in DATASETS.values() for file in files]
    assert all(len(file.revision) == 40 and set(file.revision) <= set("0123456789abcdef") for file in files)
    assert set(DATASETS) == {"sts", "transfer", "wiki1m", "nli"}
