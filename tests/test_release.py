"""What a release says of itself agrees in all places."""

import os
import re
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

import likewise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    assert re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)[1] == likewise.__version__
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[1] == likewise.__version__
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/likewise/version.py"


def test_a_release_before_the_first_is_no_stable_one():
    stage = next(one for one in PROJECT["project"]["classifiers"] if one.startswith("Development Status"))
    assert ("5" in stage) == bool(re.fullmatch(r"[1-9]\d*\.\d+\.\d+", likewise.__version__))


def test_every_extra_for_users_is_in_the_table_of_extras():
    extras = set(PROJECT["project"]["optional-dependencies"]) - {"dev", "docs"}
    pages = text("docs/get-started.md")
    table = {name for row in re.findall(r"^\| (`.*?) \|", pages, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)}
    assert extras - table == set()


def test_every_public_name_is_in_the_reference_that_is_called_stable():
    reference = text("docs/reference/python.md")
    public = {name for name in likewise.__all__ if not name.startswith("_")}
    assert {name for name in public if f"likewise.{name}" not in reference} == set()


def test_the_license_and_the_files_of_the_source_distribution_are_there():
    assert "Apache License" in text("LICENSE")
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name.lstrip("/")).exists(), name


def test_the_lock_has_a_fitting_release_of_every_requirement():
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    rows = [Requirement(row) for row in text(".ci/lock.txt").splitlines() if not row.startswith("#")]
    extras = PROJECT["project"]["optional-dependencies"]
    lines = {
        *PROJECT["project"]["dependencies"],
        *(line for name in extras.keys() - {"lora"} for line in extras[name]),
    }
    for wanted in map(Requirement, lines - {line for line in lines if line.startswith("likewise[")}):
        there = [row for row in rows if canonicalize_name(row.name) == canonicalize_name(wanted.name)]
        assert there, f"{wanted} is not in .ci/lock.txt: make lock"
        for row in there:
            (pinned,) = row.specifier
            assert wanted.specifier.contains(pinned.version), f"{wanted} and {row} of .ci/lock.txt: make lock"


def script(place: str):
    loader = SourceFileLoader(Path(place).stem, str(ROOT / place))
    module = module_from_spec(spec_from_loader(Path(place).stem, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def installer():
    return script(".ci/install")


def test_the_page_of_the_registry_has_no_link_that_leads_nowhere():
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    described = script("hatch_build.py").described
    readme = text("README.md")
    plain, linked = described(readme), described(readme, "https://example.org/a")
    for found in (plain, linked):
        targets = re.findall(r"\]\(([^)]+)\)", found)
        assert all(target.startswith("https://") for target in targets), targets
        assert "<picture>" not in found
    assert "https://example.org/a/blob/main/docs/systems/arccse.md" in linked
    assert "[**ArcCSE**]" not in plain
    assert "**ArcCSE**" in plain


def test_the_image_takes_what_the_build_needs_and_nothing_else():
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text("docs/deploy/Dockerfile"), re.MULTILINE)
    names = {name.removeprefix("./") for line in copied for name in line.split()}
    assert names == {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src"}
    assert {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")} == names
    assert "*" in text(".dockerignore").splitlines()


def test_the_proxy_names_the_scheme():
    assert "proxy_set_header   X-Forwarded-Proto $scheme;" in text("docs/deploy/nginx.conf")


def test_settings_of_pip_are_handed_on_to_uv(installer, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text("[global]\nfind-links = /one\n  /two\nextra-index-url = https://example.org/a\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://example.org/b")
    found = installer.environment(installer.pip_settings(), {"UV_FIND_LINKS": "/mine"})
    assert found["UV_INDEX"] == "https://example.org/b"  # a variable goes before a file
    assert found["UV_FIND_LINKS"] == "/mine"  # and uv's own before pip's
    assert installer.environment(installer.pip_settings(), {})["UV_FIND_LINKS"].endswith("/one,/two")
    assert "UV_TORCH_BACKEND" not in found
    assert installer.environment({}, {})["UV_TORCH_BACKEND"] == "cpu"
