"""The whole texts of errors: `messages.txt` of each room holds them under the test that makes them.

After a change of wording that is meant: LIKEWISE_WRITE_MESSAGES=1 python -m pytest tests/ROOM
"""

import multiprocessing
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from likewise.version import __version__

WRITES = bool(os.environ.get("LIKEWISE_WRITE_MESSAGES"))
TESTS = Path(__file__).parent
ROOT = TESTS.parent
LONGEST = 120
CURE = "after a change that is meant, run the file with LIKEWISE_WRITE_MESSAGES=1"

IDS: pytest.StashKey[dict[Path, list[str]]] = pytest.StashKey()
PASSED: pytest.StashKey[bool] = pytest.StashKey()


class Messages:
    """The messages of a room: the tests' ids to what their errors say, in the file's order."""

    def __init__(self, room: Path) -> None:
        self.path = room / "messages.txt"
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        self.entries = dict(map(_entry, re.split(r"\n(?=\S)", text))) if text else {}

    def write(self) -> None:
        blocks = []
        for name, messages in self.entries.items():
            lines = [f"    {message}".replace("\n", "\n" + 8 * " ") for message in messages]
            blocks.append("\n".join([name, *lines]))
        text = "\n\n".join(blocks) + "\n"
        self.path.write_text(re.sub(r"^ +$", "", text, flags=re.MULTILINE), encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[IDS] = {}
    if WRITES and (config.getoption("numprocesses", None) or os.environ.get("PYTEST_XDIST_WORKER")):
        raise pytest.UsageError("LIKEWISE_WRITE_MESSAGES works in one process: run without -n")


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash[IDS].setdefault(item.path, []).append(_name(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture(scope="session")
def new_process() -> Callable[..., multiprocessing.Process]:
    """A function that starts a function in a process of its own, forked from a server that has imported training.

    A new interpreter imports torch, transformers and datasets again, for which it takes several seconds. A process has
    one such server: benchmarks/kill.py, which the tests import, uses it too.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(
        [
            "likewise.training.train",
            "likewise.inference.encoded_files",
            "likewise.context.discriminator",
            "datasets",
            "sklearn.linear_model",
        ]
    )

    def start(function: Callable[..., None], *arguments: object) -> multiprocessing.Process:
        process = server.Process(target=function, args=arguments, daemon=True)
        process.start()
        return process

    return start


@pytest.fixture
def forget_packages() -> Iterator[Callable[[], None]]:
    """A function after which entry points of installed packages are read again, as they are after the test."""
    from likewise.runs.plugins import entry_points_of

    yield entry_points_of.cache_clear
    entry_points_of.cache_clear()


@pytest.fixture(scope="session")
def _rooms() -> dict[Path, Messages]:
    return {}


@pytest.fixture(scope="module")
def _messages(request: pytest.FixtureRequest, _rooms: dict[Path, Messages]) -> Iterator[Messages]:
    """Give the messages of the room of this file. At the end, those of tests that are gone are an error, or go."""
    parts = request.path.relative_to(TESTS).parts
    room = TESTS / parts[0] if len(parts) > 1 else TESTS
    messages = _rooms.setdefault(room, Messages(room))
    yield messages
    ids = request.config.stash[IDS][request.path]
    file = ids[0].split("::")[0] + "::"
    whole = not (any("::" in word for word in request.config.args) or request.config.getoption("lf", False))
    stale = [name for name in messages.entries if whole and name.startswith(file) and name not in ids]
    if WRITES:
        source = request.path.read_text(encoding="utf-8")

        def place(name: str) -> tuple[str, int, int]:
            if not name.startswith(file):
                return name.split("::")[0] + "::", 0, 0
            function = name.split("::")[-1].split("[")[0]
            return file, source.find(f"def {function}("), ids.index(name) if name in ids else 0

        current = [name for name in messages.entries if name not in stale]
        messages.entries = {name: messages.entries[name] for name in sorted(current, key=place)}
        messages.write()
    elif stale:
        pytest.fail(f"{messages.path} has messages of tests that are gone: {', '.join(stale)}: {CURE}")


@pytest.fixture
def recorded(
    request: pytest.FixtureRequest, _messages: Messages, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., None]]:
    """Compare a text with the next one that the room's `messages.txt` has of this test.

    Paths of temporary files begin with TMP there, and a text like the one before is left out. `hidden` is a pattern
    of what depends on the machine or on another library; `...` stands for it.
    """
    name = _name(request.node)
    expected = _messages.entries.get(name, [])
    made: list[str] = []

    def record(text: str, hidden: str | None = None) -> None:
        text = _without_paths(text, tmp_path, tmp_path_factory.getbasetemp())
        text = re.sub(hidden, "...", text) if hidden else text
        if made and text == made[-1]:
            return
        made.append(text)
        if not WRITES:
            at = len(made) - 1
            assert text == (expected[at] if at < len(expected) else None), f"{_messages.path}: {CURE}"

    yield record
    if not request.node.stash.get(PASSED, False):
        return
    if WRITES:
        _messages.entries.pop(name, None)
        _messages.entries |= {name: made} if made else {}
    elif len(made) < len(expected):
        pytest.fail(f"{_messages.path} has {len(expected)} messages of {name}, which makes {len(made)}: {CURE}")


@pytest.fixture
def says(recorded: Callable[..., None]) -> Callable[..., AbstractContextManager[pytest.ExceptionInfo]]:
    """Expect an error in a `with` block, and compare its whole text, see `recorded`."""

    @contextmanager
    def expecting(error, hidden: str | None = None) -> Iterator[pytest.ExceptionInfo]:
        with pytest.raises(error) as caught:
            yield caught
        recorded(f"{type(caught.value).__name__}: {caught.value}", hidden)

    return expecting


def _name(item: pytest.Item) -> str:
    parts = item.path.relative_to(TESTS).parts
    test = item.nodeid.split("::", 1)[1]
    if len(test) > LONGEST:  # its parameter is a long text
        test = f"{test[:LONGEST]}...{zlib.crc32(test.encode()):08x}]"
    return "::".join(["/".join(parts[1:] or parts), test])


def _without_paths(text: str, tmp_path: Path, base: Path) -> str:
    text = text.replace(str(tmp_path), "TMP")
    text = re.sub(re.escape(str(base)) + r"/([\w.-]*?)\d+(?![\w.])", r"TMP/\1", text).replace(str(base), "TMP")
    text = text.replace(str(ROOT), "CHECKOUT").replace(__version__, "VERSION")
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def _entry(block: str) -> tuple[str, list[str]]:
    name, _, rest = block.partition("\n")
    messages = re.split(r"\n    (?=\S)", "\n" + rest.rstrip("\n"))[1:]
    return name, [message.replace("\n" + 8 * " ", "\n") for message in messages]
