"""The conditions of a search, `where`: a small part of SQL, parsed here and written anew for LanceDB.

A condition comes from whoever may search, also over HTTP, and LanceDB would evaluate any function in it: one that
repeats a text can ask for more memory than there is, which ends the process. So LanceDB never sees what was given.

    condition   any ("OR" ...)     any: term ("AND" ...)
    term        "NOT" term | "(" condition ")" | comparison
    comparison  value ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
                | field ["NOT"] ("LIKE" text | "IN" "(" literal, ... ")" | "BETWEEN" literal "AND" literal)
                | field "IS" ["NOT"] "NULL"
    value       field | literal     literal: 'text' | number | TRUE | FALSE
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from likewise.errors import LikewiseError
from likewise.searching.fields import CALLED, FieldColumn

LONGEST = 10_000
"""Characters of a condition."""
_DEEPEST, _MOST = 30, 1000
"""Brackets and NOTs within each other, and comparisons and listed values altogether."""
_SHOWN = 200
"""Characters of a condition that an error repeats."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?!\w)|(?P<quoted>"[^"]+"|`[^`]+`)"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<sign><>|!=|<=|>=|[=<>(),]))""",
    re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_SIGNS = ("=", "!=", "<>", "<", "<=", ">", ">=")
_WORDS = frozenset("AND OR NOT IN LIKE BETWEEN IS NULL TRUE FALSE".split())
_GRAMMAR = "=, !=, <, <=, >, >=, LIKE, IN, BETWEEN, IS NULL, AND, OR, NOT"


class ConditionError(LikewiseError):
    """Raised if a condition is not valid; the message names the part and what can be written."""


def condition_of(given: str, fields: Sequence[str] | Mapping[str, FieldColumn]) -> str:
    """Return a condition as LanceDB reads it.

    A number may be compared with a text that shows one, and the other way round: what counts is the kind of the field.

    >>> condition_of("year>='2004' and not file like '%.md'", ["file", "year"])
    "(`year` >= '2004' AND NOT `file` LIKE '%.md')"
    >>> condition_of("year >= '2004'", {"year": FieldColumn("year", "int")})
    '`year` >= 2004'

    Args:
        given: the condition.
        fields: those that it may name; in a mapping with their columns.

    Raises:
        ConditionError: it holds anything else than fields, texts, numbers and the words above.
    """
    return _Parser(given, fields).parsed()


class _Parser:
    def __init__(self, given: str, fields: Sequence[str] | Mapping[str, FieldColumn]) -> None:
        self.given, self.fields = given, fields
        self.depth = self.count = self.at = 0
        if len(given) > LONGEST:
            self.fail(f"it has {len(given):,} characters, more than {LONGEST:,}")
        self.tokens = list(self._tokens())

    def _tokens(self) -> list[tuple[str, str]]:
        found, at, end = [], 0, len(self.given.rstrip())
        while at < end:
            match = _TOKEN.match(self.given, at)
            if match is None:
                rest = self.given[at:].lstrip()
                self.fail("a text has no end" if rest[0] in "'\"`" else f"{rest[:20]!r} is not understood")
            kind = str(match.lastgroup)
            found.append((kind, match[kind]))
            at = match.end()
        return found

    def fail(self, reason: str) -> NoReturn:
        shown = self.given if len(self.given) <= _SHOWN else f"{self.given[:_SHOWN]}..."
        raise ConditionError(
            f"the filter {shown!r} is not valid ({reason}): write it as in SQL, for example \"file LIKE '%.md'\", "
            f"with {_GRAMMAR} and brackets; the fields are {', '.join(self.fields)}"
        )

    @property
    def _word(self) -> str:
        """The next token if it is a word or a sign, in capital letters; otherwise ""."""
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return text.upper() if kind in ("name", "sign") else ""

    def _took(self, *words: str) -> str:
        """Go on if the next token is one of these, and return it; otherwise ""."""
        word = self._word
        if word not in words:
            return ""
        self.at += 1
        return word

    def _want(self, word: str) -> None:
        if not self._took(word):
            self.fail(f"{self._here} stands in the place of {word}")

    @property
    def _here(self) -> str:
        return f"{self.tokens[self.at][1][:40]!r}" if self.at < len(self.tokens) else "the end"

    def parsed(self) -> str:
        found = self._any()
        if self.at < len(self.tokens):
            self.fail(f"{self._here} stands in the place of AND, OR or the end")
        return found

    def _any(self) -> str:
        parts = [self._all()]
        while self._took("OR"):
            parts.append(self._all())
        return f"({' OR '.join(parts)})" if len(parts) > 1 else parts[0]

    def _all(self) -> str:
        parts = [self._term()]
        while self._took("AND"):
            parts.append(self._term())
        return f"({' AND '.join(parts)})" if len(parts) > 1 else parts[0]

    def _term(self) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} brackets and NOTs are within each other")
        if self._took("NOT"):
            found = f"NOT {self._term()}"
        elif self._took("("):
            found = f"({self._any()})"
            self._want(")")
        else:
            found = self._comparison()
        self.depth -= 1
        return found

    def _counted(self) -> None:
        self.count += 1
        if self.count > _MOST:
            self.fail(f"it has more than {_MOST:,} comparisons and values")

    def _comparison(self) -> str:
        self._counted()
        is_field = self.at < len(self.tokens) and self.tokens[self.at][0] in ("name", "quoted")
        left, column = self._value()
        if sign := self._took(*_SIGNS):
            right, other = self._value()
            if column and not other:
                right = self._fitted(right, column)
            elif other and not column:
                left = self._fitted(left, other)
            return f"{left} {sign} {right}"
        if not is_field or left in ("TRUE", "FALSE"):
            self.fail(f"{self._here} stands in the place of a comparison")
        if self._took("IS"):
            negated = "NOT " if self._took("NOT") else ""
            self._want("NULL")
            return f"{left} IS {negated}NULL"
        negated = "NOT " if self._took("NOT") else ""
        if self._took("LIKE"):
            if column and column.kind != "text":
                self.fail(f"{column.name} holds {CALLED[column.kind]}, and LIKE compares texts")
            return f"{left} {negated}LIKE {self._literal('text')}"
        if self._took("BETWEEN"):
            low = self._fitted(self._literal(), column)
            self._want("AND")
            return f"{left} {negated}BETWEEN {low} AND {self._fitted(self._literal(), column)}"
        if self._took("IN"):
            self._want("(")
            values = [self._fitted(self._literal(), column)]
            while self._took(","):
                self._counted()
                values.append(self._fitted(self._literal(), column))
            self._want(")")
            return f"{left} {negated}IN ({', '.join(values)})"
        self.fail(f"{self._here} stands in the place of a comparison")

    def _value(self) -> tuple[str, FieldColumn | None]:
        """Return a field, with its column if that is known, or a literal."""
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        name = text[1:-1] if kind == "quoted" else text
        if kind not in ("name", "quoted") or (kind == "name" and text.upper() in _WORDS):
            return self._literal(), None
        self.at += 1
        if self._word == "(":
            self.fail(f"{name!r} is a function, and functions are not evaluated")
        if name not in self.fields:
            self.fail(f"there is no field {name!r}")
        column = self.fields[name] if isinstance(self.fields, Mapping) else None
        return f"`{column.name if column else name}`", column

    def _fitted(self, literal: str, column: FieldColumn | None) -> str:
        """Return a literal as one of the kind of a column."""
        if column is None:
            return literal
        text = literal[1:-1] if literal.startswith("'") else literal
        if column.kind == "text":
            return literal if literal.startswith("'") else f"'{text.lower()}'"
        if column.kind == "bool" and text.upper() in ("TRUE", "FALSE"):
            return text.upper()
        if column.kind in ("int", "float") and _NUMBER.fullmatch(text):
            return text
        self.fail(f"{column.name} holds {CALLED[column.kind]}, and {literal} is not one of these")

    def _literal(self, *kinds: str) -> str:
        if not kinds and (word := self._took("TRUE", "FALSE")):
            return word
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind not in (kinds or ("text", "number")):
            self.fail(f"{self._here} stands in the place of a {'text' if kinds else 'field, text or number'}")
        self.at += 1
        return text
