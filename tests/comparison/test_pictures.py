import sys

import pytest

from likewise.comparison.pictures import check_extra, panels, save
from likewise.errors import MissingExtraError

pytest.importorskip("matplotlib")


def test_a_figure_leaves_no_global_state(tmp_path):
    figure, axes = panels(3, 6.0, 2.0)
    assert figure.get_size_inches().tolist() == [6.0, 2.0]
    assert len(axes) == 3
    written = save(figure, tmp_path / "a.png")
    assert written.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    # If another test has imported pyplot, then it knows nothing of this figure.
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_a_missing_extra_names_the_cure(monkeypatch):
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(MissingExtraError, match=r'needs matplotlib: pip install "likewise\[report\]"'):
        check_extra()
