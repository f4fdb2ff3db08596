"""With LIKEWISE_NO_SKIP set, a test that is skipped for want of chromium, Ray or nncf is a failure."""

from types import SimpleNamespace

import pytest

REASONS = (
    "Skipped: there is no chromium here: apt-get install chromium",
    "Skipped: needs the extra 'ray'",
    "Skipped: nncf is not installed: pip install 'likewise[openvino]'",
)


@pytest.mark.parametrize("reason", REASONS)
def test_a_skip_for_want_of_something_is_a_failure_if_it_is_asked_for(reason, request, monkeypatch):
    (conftest,) = (one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "NEVER_MISSING_IN_CI"))
    for wanted, told, outcome in (("", reason, "skipped"), ("1", "no real data", "skipped"), ("1", reason, "failed")):
        report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("a.py", 1, told))
        monkeypatch.setenv("LIKEWISE_NO_SKIP", wanted)
        conftest._failed_if_skipped(report)
        assert report.outcome == outcome
