from likewise.evaluation.task import TaskResult, plain


def test_undefined_scores_become_none():
    result = TaskResult("x", "X", "accuracy", float("nan"), 3)
    assert result.to_dict()["score"] is None
    assert result.cells() == ("X", "accuracy", "-", "3")
    assert plain({"a": (1.0, float("nan"))}) == {"a": [1.0, None]}
