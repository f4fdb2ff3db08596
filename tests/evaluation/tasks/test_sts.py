from likewise.evaluation.registry import TASKS
from likewise.evaluation.task import DataError, TaskMissing
from likewise.evaluation.tasks import sts

SIZES = {
    "sts12": 3108,
    "sts13": 1500,
    "sts14": 3750,
    "sts15": 3000,
    "sts16": 1186,
    "sts-b": 1379,
    "sts-b-dev": 1500,
    "sts-b-train": 5749,
    "sick-r": 4927,
}


def test_table():
    assert {task.name: sum(file.size for file in task.files) for task in sts.TASKS} == SIZES
    assert set(sts.SEVEN) <= set(SIZES)


def test_reads_what_was_written(senteval, made_pairs):
    for name, size in SIZES.items():
        task = TASKS[name]
        pairs = task.load(senteval)
        expected = [row for file in task.files for row in made_pairs[file.path]]
        assert list(zip(pairs.first, pairs.second, pairs.gold, strict=True)) == expected
        assert len(pairs.gold) == size
        assert [part for part, _ in pairs.subsets] == [file.subset for file in task.files]
        for file, (_, where) in zip(task.files, pairs.subsets, strict=True):
            assert pairs.gold[where].tolist() == [rating for *_, rating in made_pairs[file.path]]


def test_real_data(data_dir):
    for name, size in SIZES.items():
        assert len(TASKS[name].load(data_dir / "senteval").gold) == size


def test_ratings_without_sentences_are_no_task(senteval):
    # STS13's SMT: the ratings come with SentEval, the sentences do not.
    (senteval / "STS/STS13-en-test/STS.gs.SMT.txt").write_text("1.0\n")
    assert len(TASKS["sts13"].load(senteval).gold) == 1500


def test_a_missing_file_is_named(senteval, says):
    (senteval / "STS/STS14-en-test/STS.gs.images.txt").unlink()
    with says(TaskMissing):
        TASKS["sts14"].read(senteval)


def change(path, line, old, new):
    lines = path.read_text(encoding="utf-8").split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    path.write_text("\n".join(lines), encoding="utf-8")


def test_malformed_files_are_named_with_the_line(senteval, says):
    benchmark = senteval / "STS/STSBenchmark/sts-dev.csv"
    good = benchmark.read_bytes()
    change(benchmark, 12, "\t", " ")
    with says(DataError):
        TASKS["sts-b-dev"].load(senteval)
    lines = good.decode().split("\n")
    for rating in (
        "much",
        "7.5",
        "nan",
    ):
        cells = lines[4].split("\t")
        cells[4] = rating
        benchmark.write_text("\n".join([*lines[:4], "\t".join(cells), *lines[5:]]))
        with says(DataError):
            TASKS["sts-b-dev"].load(senteval)
    benchmark.write_bytes(b"\n".join(good.split(b"\n")[:-5]))
    with says(DataError):
        TASKS["sts-b-dev"].load(senteval)
    benchmark.write_bytes(good.replace(b"\n", b"\n\xff", 2))
    with says(DataError):
        TASKS["sts-b-dev"].load(senteval)


def test_gold_of_another_length(senteval, says):
    gold = senteval / "STS/STS13-en-test/STS.gs.OnWN.txt"
    gold.write_text(gold.read_text() + "1.0\n")
    with says(DataError):
        TASKS["sts13"].load(senteval)


def test_sick_counts_its_header_as_line_one(senteval, says):
    path = senteval / "SICK/SICK_test_annotated.txt"
    lines = path.read_text().split("\n")
    cells = lines[2].split("\t")
    cells[3] = "0.5"
    path.write_text("\n".join([*lines[:2], "\t".join(cells), *lines[3:]]))
    with says(DataError):
        TASKS["sick-r"].load(senteval)


def test_pairs_of_the_benchmark_are_left_out_of_the_other_tests(senteval, made_pairs):
    names = ("sts-b-train", "sts-b-dev")
    known = {frozenset(pair) for name in names for *pair, _ in made_pairs[TASKS[name].files[0].path]}
    first, second = next(iter(made_pairs[TASKS["sts-b-dev"].files[0].path]))[:2]
    path = senteval / TASKS["sts12"].files[0].path
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[3] = f"{second.upper()} !\t{first}"  # the other order, other letters and signs
    path.write_text("\n".join(lines), encoding="utf-8")
    (task,) = sts.without_overlap([TASKS["sts12"]])
    pairs = TASKS["sts12"].load(senteval)
    shared = sum(frozenset(pair) in known for pair in zip(pairs.first, pairs.second, strict=True))
    ready = task.read(senteval)
    result = ready.score_pairs(pairs.gold[: len(ready.sentences) // 2])
    assert result.left_out == shared + 1
    assert result.n == len(pairs.gold) - result.left_out == len(ready.sentences) // 2
    assert f"{second.upper()} !" not in ready.sentences


def test_the_benchmark_itself_keeps_its_pairs():
    assert [task.without for task in sts.without_overlap([TASKS["sts-b-dev"]])] == [()]
