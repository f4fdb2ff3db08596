"""The processes of one training, as torchrun or `accelerate launch` starts them: who writes, who waits, what is shared.

Letters of the shapes: B rows of this process, N rows of all processes, D numbers of a row.
"""

import atexit
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

_T = TypeVar("_T")
_LONGEST_WAIT = timedelta(days=1)
"""Others wait while the first process prepares a corpus; the launcher ends them all where one fails."""
FAILED = 2
"""The exit code of a process that ends because another process failed, which reported the reason."""


def start() -> None:
    """Join the processes that the launcher started; one process alone has nothing to join."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or distributed.is_initialized():  # set by the launcher
        return
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=_LONGEST_WAIT)
    atexit.register(_leave)


def count() -> int:
    """Return the number of processes; 1 before `start`."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def number() -> int:
    """Return the number of this process, from 0."""
    return distributed.get_rank() if count() > 1 else 0


def is_first() -> bool:
    """Return whether this process writes and shows: the first, or the only one."""
    return number() == 0


def by_first(work: Callable[[], _T]) -> _T:
    """Call a function in the first process, and return its result, plain values, in all.

    Where it fails, the first process raises its error, and the others exit without a word.
    """
    if count() == 1:
        return work()
    failure: BaseException | None = None
    box: list[tuple[bool, _T | None]] = [(False, None)]
    if is_first():
        try:
            box = [(True, work())]
        except BaseException as error:
            failure = error
    distributed.broadcast_object_list(box, src=0)
    if failure is not None:
        raise failure
    done, result = box[0]
    if not done:
        raise SystemExit(FAILED)
    return result  # type: ignore[return-value]


@contextmanager
def in_turn() -> Iterator[None]:
    """Run a block in the first process of each machine, then in the others, which find its files in the cache."""
    if count() == 1:
        yield
        return
    local_first = not int(os.environ.get("LOCAL_RANK", "0"))
    failed = local_first
    try:
        if local_first:
            yield
            failed = False
    finally:
        others_failed = any_of(failed)
    if others_failed:
        raise SystemExit(FAILED)
    if not local_first:
        yield


def any_of(flag: bool) -> bool:
    """Return whether a flag is set in any process."""
    if count() == 1:
        return flag
    result = torch.tensor(int(flag), device=_device())
    distributed.all_reduce(result, distributed.ReduceOp.MAX)
    return bool(result)


def gather_rows(rows: Tensor, *, ragged: bool = False) -> tuple[Tensor, int]:
    """Return the rows of all processes, (N, D) with gradients, and the first row of this process's own.

    Args:
        rows: (B, D). In a run of one process they are returned as they are, with 0.
        ragged: B may differ from one process to the next.
    """
    if count() == 1:
        return rows, 0
    if not ragged:
        return _gathered(rows), number() * len(rows)
    sizes = _sizes(len(rows))
    most = max(1, *sizes)
    padded = rows.new_zeros(most, *rows.shape[1:])
    padded = padded.index_copy(0, torch.arange(len(rows), device=rows.device), rows)
    pieces = _gathered(padded).split(most)
    return torch.cat([piece[:size] for piece, size in zip(pieces, sizes, strict=True)]), sum(sizes[: number()])


def share(rows: int) -> float:
    """Return the factor that turns a mean over the rows of this process into its share of the mean over all.

    The mean of these shares over the processes is the mean over all rows; 1 where all have equally many.
    """
    if count() == 1:
        return 1.0
    return rows * count() / max(1, sum(_sizes(rows)))


def mean_of_processes(values: Tensor) -> Tensor:
    """Return the mean of a tensor over the processes, with gradients."""
    from torch.distributed.nn.functional import all_reduce  # not in every build of torch

    mean: Tensor = all_reduce(values.contiguous()) / count()
    return mean


def same_weights(model: nn.Module) -> None:
    """Give every process the parameters and buffers of the first."""
    if count() == 1:
        return
    for tensor in [*model.parameters(), *model.buffers()]:
        distributed.broadcast(tensor.data, src=0)


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over the processes.

    Instead of torch's DistributedDataParallel, which allows one forward pass for each backward pass, through the
    wrapped model alone: a loss here calls the encoder several times, and parts of it (a copy, a decoder) directly. A
    parameter without a gradient in every process keeps none.
    """
    if count() == 1:
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    has = torch.tensor([parameter.grad is not None for parameter in trained], dtype=torch.int32, device=_device())
    distributed.all_reduce(has, distributed.ReduceOp.MAX)
    grads = []
    for parameter, any_has in zip(trained, has.tolist(), strict=True):
        if any_has:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.contiguous()
            grads.append(parameter.grad)
    for work in [distributed.all_reduce(grad, async_op=True) for grad in grads]:
        work.wait()
    for grad in grads:
        grad /= count()


def _sizes(rows: int) -> list[int]:
    sizes = torch.zeros(count(), dtype=torch.long, device=_device())
    sizes[number()] = rows
    distributed.all_reduce(sizes)
    return [int(size) for size in sizes]


def _device() -> str:
    """Return the device of small tensors that are exchanged: a group of NCCL alone takes none of the processor."""
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _gathered(rows: Tensor) -> Tensor:
    from sentence_transformers.util import all_gather_with_grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch, for sentence-transformers
        return all_gather_with_grad(rows)
