import importlib
import inspect

import pytest


@pytest.mark.parametrize(
    "package",
    [
        "likewise",
        "likewise.searching.duplicates",
        "likewise.context",
        "likewise.evaluation",
        "likewise.inference",
        "likewise.training",
        "likewise.searching",
        "likewise.searching.serve",
    ],
)
def test_every_public_name_is_what_it_says_also_the_second_time(package, says):
    module = importlib.import_module(package)
    for name in module.__all__:
        for _ in range(2):
            assert not inspect.ismodule(getattr(module, name)), name
    assert set(module.__all__) <= {*dir(module), "__version__"}
    with says(AttributeError):
        module.nothing_of_the_kind  # noqa: B018
