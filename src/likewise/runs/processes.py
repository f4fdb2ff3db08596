"""The processes of one training, as torchrun or `accelerate launch` starts them, with their shared data.

Letters of the shapes: B rows of this process, N rows of all processes, D numbers of a row.
"""

import atexit
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import TypeVar, cast

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from torch import Tensor, distributed, nn

_T = TypeVar("_T")
_LONGEST_WAIT = timedelta(days=1)
"""Others wait while the first process prepares a corpus; the launcher ends them all where one fails."""
FAILED = 2
"""The exit code of a process that ends because the first one failed, which has reported why."""


def start() -> None:
    """Join the processes that the launcher started; one process alone has nothing to join."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not distributed.is_initialized():  # set by the launcher
        atexit.register(PartialState(cpu=not torch.cuda.is_available(), timeout=_LONGEST_WAIT).destroy_process_group)


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
    """Call a function in the first process, and return its result (plain values) in all processes.

    If it fails, the first process raises its error, and the others exit silently.
    """
    if count() == 1:
        return work()
    box: list[_T | None] = [None]
    failure: BaseException | None = None
    if is_first():
        try:
            box = [work()]
        except BaseException as error:
            failure = error
    if any_of(failure is not None):
        raise failure or SystemExit(FAILED)
    distributed.broadcast_object_list(box, src=0)
    return box[0]  # type: ignore[return-value]


def in_turn() -> AbstractContextManager[None]:
    """Run a block in the first process of each machine, then in the others, which find its files in the cache."""
    return nullcontext() if count() == 1 else PartialState().local_main_process_first()


def any_of(flag: bool) -> bool:
    """Return whether a flag is set in any process."""
    return flag if count() == 1 else bool(_reduced([flag], "max")[0])


def gather_rows(rows: Tensor, *, ragged: bool = False) -> tuple[Tensor, int]:
    """Return the rows of all processes, (N, D) with gradients, and the first row of this process's own.

    Args:
        rows: (B, D) rows of this process. With a single process, they are returned unchanged, with 0.
        ragged: B may differ from one process to the next.
    """
    if count() == 1:
        return rows, 0
    if not ragged:
        return _gathered(rows), number() * len(rows)
    sizes = _sizes(len(rows))
    most = max(1, *sizes)
    pieces = _gathered(nn.functional.pad(rows, (0, 0) * (rows.ndim - 1) + (0, most - len(rows)))).split(most)
    return torch.cat([piece[:size] for piece, size in zip(pieces, sizes, strict=True)]), sum(sizes[: number()])


def share(rows: int) -> float:
    """Return the factor that turns a mean over the rows of this process into its share of the mean over all.

    The mean of these shares over the processes is the mean over all rows; 1 where all have equally many.
    """
    return 1.0 if count() == 1 else rows * count() / max(1, sum(_sizes(rows)))


def mean_of_processes(values: Tensor) -> Tensor:
    """Return the mean of a tensor over the processes, with gradients."""
    from torch.distributed.nn.functional import all_reduce  # not in every build of torch

    return cast(Tensor, all_reduce(values.contiguous()) / count())


def same_weights(model: nn.Module) -> None:
    """Give every process the parameters and buffers of the first."""
    if count() == 1:
        return
    for tensor in [*model.parameters(), *model.buffers()]:
        distributed.broadcast(tensor.data, src=0)


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over the processes.

    torch's DistributedDataParallel allows one forward pass for each backward pass, through the wrapped model alone; a
    loss here calls the encoder several times, and parts of it (a copy, a decoder) directly. A parameter without a
    gradient in every process keeps none.
    """
    if count() == 1:
        return
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    has = _reduced([parameter.grad is not None for parameter in trained], "max")
    for parameter, in_any in zip(trained, has, strict=True):
        if in_any:
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.contiguous()
            parameter.grad = reduce(grad, "mean")


def _gathered(rows: Tensor) -> Tensor:
    from sentence_transformers.util import all_gather_with_grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch, for sentence-transformers
        return all_gather_with_grad(rows)


def _sizes(rows: int) -> list[int]:
    return _reduced([rows if i == number() else 0 for i in range(count())], "sum")


def _reduced(values: Sequence[int], how: str) -> list[int]:
    """Return integers, each reduced over the processes."""
    return cast(list[int], reduce(torch.tensor([*map(int, values)], device=PartialState().device), how).tolist())
