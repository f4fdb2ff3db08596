import pytest

from likewise.evaluation.registry import TASKS, resolve
from likewise.evaluation.task import EvaluationError
from likewise.evaluation.tasks.sts import SEVEN


def names(tasks):
    return tuple(task.name for task in resolve(tasks)[0])


def test_groups_and_names():
    assert names("sts") == SEVEN
    assert resolve("sts")[1] == ("sts",)
    assert names("sts12, STS-B ,mr") == ("sts12", "sts-b", "mr")
    assert names(["sts-b", "sts-b"]) == ("sts-b",)
    assert resolve("sts12")[1] == ()
    # All seven one by one are the group too; and a task named twice is one task.
    assert resolve([*SEVEN, "mr"])[1] == ("sts",)
    assert names("sts12,sts") == SEVEN


@pytest.mark.parametrize("wrong", ["sts17", "sts12,", ""])
def test_unknown_names_list_the_known(wrong):
    with pytest.raises(EvaluationError) as error:
        resolve(wrong)
    assert all(name in str(error.value) for name in TASKS)
