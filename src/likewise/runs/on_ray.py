"""Calls of functions by the workers of a Ray cluster, which is how likewise uses other machines.

Ray schedules the calls, and repeats the calls of killed workers. The other machines must have likewise installed and
share the files, but run no process of likewise. The calls are Ray tasks. Ray Data is not used, because it needs all
rows before it starts, does not return rows in order while it runs, and does not support ray:// addresses.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from likewise.errors import LikewiseError, first_line, require_extra
from likewise.runs.releases import DECIDING, versions
from likewise.runs.whole_files import Record

HERE = "ray"
"""The cluster of $RAY_ADDRESS; where that is not set, one of this machine alone."""
_ANSWERS_WITHIN = 10.0
Result = TypeVar("Result")


class ClusterError(LikewiseError):
    """Raised if a Ray cluster cannot be used; the message names the cure."""


@contextmanager
def cluster(on: str | None, workers: int | None = None) -> Iterator[int]:
    """Connect to a Ray cluster in a `with` block, and yield the number of workers to use.

    A local cluster is started here and stopped at the end; other clusters keep running.

    Args:
        on: 'ray' (see `HERE`), or the address of a cluster, as ray://head:10001; None connects to nothing and yields 0.
        workers: Number of workers; by default one per core of the cluster.

    Raises:
        MissingExtraError: If Ray is not installed.
        ClusterError: If the cluster does not answer, or a machine of it has other versions than this one; or workers
            are given without a cluster.
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
        raise ClusterError(f"workers must be 1 or more, not {workers}")
    if workers is not None and not on:
        raise ClusterError(f"workers is {workers}, but no Ray cluster is given: add --on ray, or leave --workers out")


def loadable(model: str | None) -> str:
    """Return the name by which a worker loads a model itself; raise a ClusterError if it has none."""
    if model is None:
        raise ClusterError("the workers of a cluster load the model themselves: give its path or name")
    return model


def check_versions(node: str, there: Mapping[str, str]) -> None:
    """Check that a machine of the cluster has the versions of this one.

    Raises:
        ClusterError: If it has not; the message names the package.
    """
    here = versions()
    for package in DECIDING:
        if there.get(package) != here.get(package):
            raise ClusterError(
                f"{node} has {package} {there.get(package, 'not installed')}, and this machine {here.get(package)}: "
                "install the same version on all machines"
            )


def begun_on_ray(function: Callable[..., Result], *arguments: object) -> Callable[[], Result]:
    """Start a call of a function on one core of the `cluster`; return a function that waits for the result.

    If a worker is killed, another worker repeats its call. To reuse an object such as a model between calls, the
    function caches it (`functools.lru_cache`).

    Raises:
        LikewiseError: If the called function raises it; the returned function raises it again.
    """
    import ray

    reference = ray.remote(num_cpus=1, max_retries=-1)(_call).remote(function, *arguments)

    def wait() -> Result:
        try:
            result: Result = ray.get(reference)
        except ray.exceptions.RayTaskError as error:  # its message is the traceback of the worker
            if isinstance(error.cause, LikewiseError):
                raise error.cause from None
            raise
        return result

    return wait


def _call(function: Callable[..., Result], *arguments: object) -> Result:
    return function(*arguments)


def _is_local(on: str) -> bool:
    return on == HERE and not os.environ.get("RAY_ADDRESS")


def _connect(on: str, workers: int | None) -> None:
    import ray

    quiet: Record = {"log_to_driver": False, "logging_level": "error"}
    if _is_local(on):
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine takes longer than Ray expects
        os.environ.setdefault("RAY_worker_niceness", "0")  # at Ray's 15 they hardly get a turn on such a machine
        try:
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:  # Ray raises nothing more specific
            ray.shutdown()
            raise ClusterError(
                f"Ray could not be started on this machine ({first_line(error)}): run the same command again when it "
                f"has free memory and processors, or without --on"
            ) from None
        return
    address = os.environ["RAY_ADDRESS"] if on == HERE else on
    if on != HERE and not on.startswith("ray://"):
        raise ClusterError(f"--on {on!r} is not a cluster: give 'ray', or an address such as ray://head:10001")
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
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    for node in ray.nodes():
        if node["Alive"]:
            on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0)(versions).options(scheduling_strategy=on_node)
            try:
                there = ray.get(task.remote())
            except ray.exceptions.RayError as error:
                raise ClusterError(
                    f"{node['NodeManagerAddress']} cannot run likewise ({first_line(error)}): install this machine's "
                    f"version there"
                ) from None
            check_versions(node["NodeManagerAddress"], there)
