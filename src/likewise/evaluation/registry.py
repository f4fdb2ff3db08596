"""The evaluation tasks by name: built-in tasks, and tasks that other packages register."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from likewise.evaluation.data_folder import OwnTask
from likewise.evaluation.task import EvaluationError, Task
from likewise.evaluation.tasks import negation, sts, transfer, wiki_sections
from likewise.evaluation.tasks.classes import ClassesTask
from likewise.evaluation.tasks.rated_file import RatedFileTask
from likewise.runs.plugins import COMPARED_TASKS, entry_points_of, load_registered, not_installed

_FAMILIES = (sts, transfer, negation, wiki_sections)
TASKS: dict[str, Task] = {task.name: task for family in _FAMILIES for task in family.TASKS}
"""The tasks of likewise itself; `known_tasks` includes other packages' tasks."""
ENTRY_POINTS = "likewise.tasks"
"""The group of entry points that register tasks: each loads a `Task`, or a class of `OwnTask`, a family by its name."""
GROUPS: dict[str, tuple[str, ...]] = {"sts": sts.SEVEN, "transfer": transfer.SEVEN}
"""Names for several tasks whose mean is reported, in the order of the papers' tables."""
OWN_TASKS: dict[str, type[OwnTask]] = {"pairs": RatedFileTask, "classes": ClassesTask}
"""The families of tasks on your own files, by the word before the colon; entry points add others (retrieval:FOLDER)."""


def known_tasks() -> dict[str, Task]:
    """Return all tasks by name.

    Raises:
        EvaluationError: If an entry point of another package cannot be loaded, is not a `Task`, or has the name of
            another task.
    """
    return {**_registered()[0], **TASKS}


def resolve(tasks: str | Task | Iterable[str | Task]) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Find tasks by name.

    Args:
        tasks: Names of tasks or groups, in upper or lower case (except for paths), and `Task` objects, in a sequence or
            as comma-separated names.

    Returns:
        The tasks, each once and in the order given, and the groups whose members are all among them.
    """
    known, families = known_tasks(), {**_registered()[1], **OWN_TASKS}
    items = tasks.split(",") if isinstance(tasks, str) else [tasks] if isinstance(tasks, Task) else list(tasks)
    chosen: dict[str, Task] = {}
    for item in items:
        if isinstance(item, Task):
            if chosen.setdefault(item.name, item) != item:
                raise EvaluationError(f"Two tasks are named '{item.name}'; rename one of them.")
            continue
        family, colon, place = item.strip().partition(":")
        if colon and place and (own := families.get(family.lower())):
            name = f"{family.lower()}:{place}"
            chosen.setdefault(name, own.at(name, place))
            continue
        name = item.strip().lower().replace("sst-2", "sst2")  # as the papers write it
        if name not in GROUPS and name not in known:
            if name in COMPARED_TASKS:
                raise EvaluationError(not_installed(name))
            raise EvaluationError(f"Unknown task '{item.strip()}'. Choose from {_listed(known, families)}.")
        for member in GROUPS.get(name, (name,)):
            chosen.setdefault(member, known[member])
    groups = tuple(group for group, members in GROUPS.items() if set(members) <= set(chosen))
    titles = Counter(task.title for task in chosen.values())
    # Two folders may have the same last name.
    named = [
        replace(task, title=task.name) if isinstance(task, OwnTask) and titles[task.title] > 1 else task
        for task in chosen.values()
    ]
    return tuple(named), groups


def rated_task(name: str) -> sts.StsTask:
    """Find one task of rated pairs by name."""
    rated = {name: task for name, task in known_tasks().items() if isinstance(task, sts.StsTask)}
    key = name.strip().lower()
    if key not in rated:
        raise EvaluationError(f"'{name}' is not a task of rated pairs. Choose one of {', '.join(rated)}.")
    return rated[key]


def _listed(known: Iterable[str], families: Mapping[str, type[OwnTask]]) -> str:
    groups = [f"{group} ({', '.join(members)})" for group, members in GROUPS.items()]
    others = [name for name in known if not any(name in members for members in GROUPS.values())]
    own = [f"{family}:{kind.PLACE}" for family, kind in families.items()]
    return ", ".join([*groups, *others, *own])


@cache
def _registered() -> tuple[dict[str, Task], dict[str, type[OwnTask]]]:
    """Return the tasks and the families of tasks that entry points register, by name."""
    tasks: dict[str, Task] = {}
    families: dict[str, type[OwnTask]] = {}
    for point in entry_points_of(ENTRY_POINTS):
        where = f"the entry point {point.name}"
        family = load_registered(point, object, where, EvaluationError)
        if isinstance(family, type) and issubclass(family, OwnTask):
            families[point.name] = family
            continue
        # mypy takes an abstract class for one that is about to be called.
        task = load_registered(point, Task, where, EvaluationError)  # type: ignore[type-abstract]
        if task.name in TASKS or task.name in GROUPS or task.name in tasks:
            raise EvaluationError(f"{where} ({point.value}): the task {task.name!r} already exists")
        tasks[task.name] = task
    return tasks, families
