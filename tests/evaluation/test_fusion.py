import numpy as np

from likewise.evaluation.fusion import standardised, towards_near


def test_standardised_scores_have_mean_0_and_deviation_1_by_query():
    scores = np.random.default_rng(0).exponential(size=(4, 30))
    for row, given in zip(standardised(scores), scores, strict=True):
        np.testing.assert_allclose(row, (given - given.mean()) / given.std())
    assert standardised(np.ones((2, 3))).tolist() == [[0.0] * 3] * 2


def test_a_passage_takes_its_share_of_its_nearest():
    near = np.array([[2.0, 4.0], [1.0, np.nan], [np.nan, np.nan]])
    own = np.array([1.0, 3.0, 5.0])
    np.testing.assert_allclose(own + 0.25 * towards_near(own, near), [1.5, 2.5, 5.0])
