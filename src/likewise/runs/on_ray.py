"""Work on a Ray cluster: pieces of a job in actors of Ray Data, and single calls as futures.

Ray schedules, and repeats what a killed worker had under way. Nothing of likewise is started on the other machines:
they have it installed, and see the same files.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from likewise.errors import LikewiseError, first_line, require_extra
from likewise.runs.plan import DECIDING
from likewise.runs.provenance import versions

HERE = "ray"
"""The cluster of $RAY_ADDRESS; where that is not set, one of this machine alone."""
_ANSWERS_WITHIN = 10.0
Piece = dict[str, Any]
T = TypeVar("T")


class ClusterError(LikewiseError):
    """Raised if a Ray cluster cannot be used; the message names the cure."""


@contextmanager
def cluster(on: str | None, workers: int | None = None) -> Iterator[int]:
    """Connect to a Ray cluster in a `with` block, and yield the number of workers to use.

    A cluster of this machine alone is started here and stopped at the end; another one is left as it is.

    Args:
        on: 'ray' (see `HERE`), or the address of a cluster, as ray://head:10001; None connects to nothing and yields 0.
        workers: how many; None for one on each core of the cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        ClusterError: the cluster does not answer, or a machine of it has other versions than this one; or
            workers are given without a cluster.
    """
    check_workers(on, workers)
    if not on:
        yield 0
        return
    require_extra("ray", "--on ray", "ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    ours = not ray.is_initialized()
    if ours:
        _connect(on, workers)
    try:
        if not _is_local(on):
            _check_nodes()
        yield workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if ours:
            ray.shutdown()


def check_workers(on: str | None, workers: int | None) -> None:
    """Raise a ClusterError if a number of workers is less than 1, or given without a cluster."""
    if workers is not None and workers < 1:
        raise ClusterError(f"workers is {workers}: give 1 or more")
    if workers is not None and not on:
        raise ClusterError(f"workers is {workers}, but no Ray cluster is given: add --on ray, or leave --workers out")


def loadable(model: str | None) -> str:
    """Return the name by which a worker loads a model itself; raise a ClusterError if it has none."""
    if model is None:
        raise ClusterError("the workers of a cluster load the model themselves: give its folder or its name")
    return model


def _is_local(on: str) -> bool:
    return on == HERE and not os.environ.get("RAY_ADDRESS")


def _connect(on: str, workers: int | None) -> None:
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if _is_local(on):
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine takes longer than Ray expects
        os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's 15 they hardly get a turn on such a machine
        try:
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:  # Ray raises nothing more specific
            ray.shutdown()
            raise ClusterError(
                f"Ray could not be started on this machine ({first_line(error)}): run the same command again when it "
                "has memory and processors to spare, or without --on"
            ) from None
        return
    address = os.environ["RAY_ADDRESS"] if on == HERE else on
    if on != HERE and not on.startswith("ray://"):
        raise ClusterError(f"--on {on!r} is not a cluster: give ray, or an address such as ray://head:10001")
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if port := parts.port or (10001 if parts.scheme else 0):  # Ray itself would try for minutes
            socket.create_connection((parts.hostname or "", port), _ANSWERS_WITHIN).close()
        with warnings.catch_warnings(action="ignore"):  # what it warns of, the message tells
            ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({first_line(error)}): check the address and `ray status` there, set "
            "RAY_AUTH_MODE=token if the cluster asks for a token, or use --on ray for this machine alone"
        ) from None


def _check_nodes() -> None:
    """Check the versions of each machine of the cluster."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    for node in ray.nodes():
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0)(versions).options(scheduling_strategy=there)
            try:
                found = ray.get(task.remote())
            except ray.exceptions.RayError as error:
                raise ClusterError(
                    f"{node['NodeManagerAddress']} cannot run likewise ({first_line(error)}): install the version of "
                    "this machine there"
                ) from None
            check_versions(node["NodeManagerAddress"], found)


def check_versions(node: str, found: Mapping[str, str]) -> None:
    """Check that a machine of the cluster has the versions of this one.

    Raises:
        ClusterError: it has not; the message names the package.
    """
    here = versions()
    for package in DECIDING:
        if found.get(package) != here.get(package):
            raise ClusterError(
                f"{node} has {package} {found.get(package, 'not installed')}, and this machine {here.get(package)}: "
                "install the same version on all machines"
            )


def pieces_on_ray(
    worker: Callable[..., Callable[[Piece], Piece]], arguments: Sequence[Any], pieces: Sequence[Piece], workers: int
) -> Iterator[Piece]:
    """Yield what workers make of pieces, in the order in which they are done; needs a `cluster`.

    Args:
        worker: called with the arguments once in each actor, gives the function of a piece.
        arguments: what can be pickled.
        pieces: plain values. One whose actor is killed is done again by another.

    Raises:
        LikewiseError: a worker raised one.
    """
    if not pieces:
        return
    import ray

    given = (worker, tuple(arguments), [json.dumps(one) for one in pieces], workers)
    if _is_client():
        feed: Any = ray.remote(num_cpus=0)(cast(Any, _Feed)).remote(*given)
        done: Iterator[Any] = iter(lambda: ray.get(feed.next.remote()), None)
    else:
        done = _done_pieces(*given)
    for row in done:
        found: Piece = json.loads(row)
        if error := found.get("error"):
            raise LikewiseError(error)
        yield found


def _is_client() -> bool:
    """Return whether this process is outside the cluster, at a ray:// address, where Ray Data does not run."""
    from ray.util.client import ray

    return bool(ray.is_connected())


def _done_pieces(worker: Any, arguments: tuple[Any, ...], pieces: list[str], workers: int) -> Iterator[str]:
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel("ERROR")  # it tells its own progress
    rows = [{"piece": one} for one in pieces]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _Actor,
        fn_constructor_args=(worker, arguments),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(rows))),
        num_cpus=1,
    )
    for row in dataset.iter_rows():
        yield row["done"]


class _Feed:
    """A process in the cluster that runs Ray Data for one outside it."""

    def __init__(self, *given: Any) -> None:
        self.done = _done_pieces(*given)

    def next(self) -> str | None:
        """Return the next finished piece of work, None at the end."""
        return next(self.done, None)


class _Actor:
    """The process of a worker."""

    def __init__(self, worker: Callable[..., Callable[[Piece], Piece]], arguments: tuple[Any, ...]) -> None:
        self.do: Callable[[Piece], Piece] | None = None
        self.failure = ""
        try:
            self.do = worker(*arguments)
        except LikewiseError as error:  # told once and clearly; as an exception Ray would start the actor again
            self.failure = str(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Do one piece."""
        return {"done": [json.dumps(self._done(json.loads(str(piece)))) for piece in batch["piece"]]}

    def _done(self, piece: Piece) -> Piece:
        if self.do is None:
            return {"error": self.failure}
        try:
            return self.do(piece)
        except LikewiseError as error:
            return {"error": str(error)}


class RayExecutor(Executor):
    """The workers of a `cluster` as an executor: each call is a task, which is repeated if its worker is killed."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call."""
        import ray

        found: Future[Any] = ray.remote(num_cpus=1, max_retries=-1)(fn).remote(*args, **kwargs).future()
        return found
