"""The rules of negation and their version move together: negations are kept by the version."""

import ast
from hashlib import blake2b
from importlib.resources import files

from likewise.augment.negation import RULES_VERSION

CODE = "593a55387b32d975"
"""The digest of the rules of this version, without comments and docstrings."""
NO_RULES = {"__init__.py", "stream.py", "parser.py"}


def digest() -> str:
    found = blake2b(digest_size=8)
    for path in sorted(files("likewise.augment.negation").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".txt"):
            lines = path.read_text(encoding="utf-8").splitlines()
            found.update("\n".join(line for line in lines if line and not line.startswith("#")).encode())
        elif path.name.endswith(".py") and path.name not in NO_RULES:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                    and ast.get_docstring(node) is not None
                ):
                    node.body = node.body[1:] or [ast.Pass()]
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RULES_VERSION":
                    node.value = ast.Constant(0)
            found.update(ast.unparse(tree).encode())
    return found.hexdigest()


def test_the_rules_are_those_of_their_version():
    assert (RULES_VERSION, digest()) == (5, CODE), (
        f"the rules have changed: raise RULES_VERSION, and write it and {digest()!r} here. Where no negation can have "
        "changed, the digest alone"
    )
