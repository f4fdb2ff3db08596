import pytest

from likewise.comparison.pictures import check_extra
from likewise.errors import MissingExtraError

pytest.importorskip("matplotlib")


def test_a_missing_extra_names_the_cure(monkeypatch):
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(MissingExtraError, match=r'needs matplotlib: pip install "likewise\[report\]"'):
        check_extra()
