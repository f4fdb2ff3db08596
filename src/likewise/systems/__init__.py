"""Systems of other papers to compare with, brought by entry points as a package from outside would bring them.

Nothing in likewise imports this folder: the entry points of the group `likewise.recipes` in pyproject.toml name them.
"""
