"""The filters of a search, `where`: a small subset of SQL, which is parsed here and translated for LanceDB.

Any user of the search can pass a condition, also over HTTP, and LanceDB would evaluate any function in it: a function
that repeats a string can exhaust the memory and end the process. The given condition is therefore never passed to
LanceDB.

    condition   any ("OR" ...)     any: term ("AND" ...)
    term        "NOT" term | "(" condition ")" | comparison
    comparison  value ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
                | field ["NOT"] ("LIKE" text | "IN" "(" literal, ... ")" | "BETWEEN" literal "AND" literal)
                | field "IS" ["NOT"] "NULL"
    value       field | literal     literal: 'text' | number | TRUE | FALSE

String comparisons ignore case, except for ids. A file also matches by the end of its path, and a list matches if one of
its members does. A date without a time is the whole day, and '2024-05' the whole month; dates are not compared with
other strings.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from likewise.errors import LikewiseError
from likewise.searching.index.fields import BETWEEN, CALLED, FieldColumn, has_no_seconds, is_date

LONGEST = 10_000
"""Characters of a condition."""
_DEEPEST, _MOST = 30, 1000
"""Brackets and NOTs within each other, and comparisons and listed values altogether."""
_LONGEST_EXCERPT = 200
"""Characters of a condition that an error repeats."""
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>{_NUMBER})(?!\w)|(?P<quoted>"[^"]+"|`[^`]+`)"""
    r"""|(?P<name>[^\W\d]\w*)|(?P<sign><>|!=|<=|>=|[=<>(),]))""",
    re.DOTALL,
)
_SIGNS = {"=": "=", "!=": "<>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison operators, each with the operator for exchanged sides."""
_ORDER = ("<", "<=", ">", ">=")
_WORDS = frozenset("AND OR NOT IN LIKE ILIKE BETWEEN IS NULL TRUE FALSE".split())
_GRAMMAR = "=, !=, <, <=, >, >=, LIKE, IN, BETWEEN, IS NULL, AND, OR, NOT"
_PATTERN_SIGN = re.compile(r"\\[%_\\]|.", re.DOTALL)
_BACKSLASH = re.compile(r"\\(?![%_\\])")  # in a pattern it stands for itself, unless a wildcard follows
_MOMENT = timedelta(microseconds=1)
_PERIOD = re.compile(r"(\d{4})(?:-(\d\d))?")


class SearchError(LikewiseError):
    """Raised if an index, a query or a filter is invalid; the message names the cure."""


def condition_of(given: str, fields: Mapping[str, FieldColumn]) -> str:
    """Return a condition in the syntax of LanceDB.

    A number can be compared with a string that contains a number, according to the kind of the field.

    >>> year = FieldColumn("int_year", "int")
    >>> condition_of("year >= '2004' AND NOT year = 2010", {"year": year})
    '(`int_year` >= 2004 AND NOT `int_year` = 2010)'

    Args:
        given: Condition.
        fields: Allowed fields, with their columns.

    Raises:
        SearchError: If it contains anything except fields, strings, numbers and the words above, or an invalid
            comparison.
    """
    return _Parser(given, fields).parsed()


class _Parser:
    def __init__(self, given: str, fields: Mapping[str, FieldColumn]) -> None:
        self.given, self.fields = given, fields
        self.depth = self.count = self.at = 0
        if len(given) > LONGEST:
            self.fail(f"it has {len(given):,} characters, more than {LONGEST:,}")
        self.tokens = list(self._tokens())

    def _tokens(self) -> list[tuple[str, str]]:
        tokens, at, end = [], 0, len(self.given.rstrip())
        while at < end:
            match = _TOKEN.match(self.given, at)
            if match is None:
                rest = self.given[at:].lstrip()
                self.fail("a quotation mark is missing" if rest[0] in "'\"`" else f"{rest[:20]!r} is not understood")
            kind = str(match.lastgroup)
            tokens.append((kind, match[kind]))
            at = match.end()
        return tokens

    def fail(self, reason: str) -> NoReturn:
        excerpt = self.given if len(self.given) <= _LONGEST_EXCERPT else f"{self.given[:_LONGEST_EXCERPT]}..."
        raise SearchError(
            f"the filter {excerpt!r} is not valid ({reason}): write it as in SQL, for example, \"file LIKE '%.md'\", "
            f"with {_GRAMMAR} and brackets; the fields are {', '.join(self.fields)}"
        )

    @property
    def _next(self) -> tuple[str, str]:
        """The kind and the text of the next token; two times "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def _took(self, *words: str) -> str:
        """Go on if the next token is one of these, and return it; otherwise ""."""
        kind, text = self._next
        word = text.upper() if kind in ("name", "sign") else ""
        if word not in words:
            return ""
        self.at += 1
        return word

    def _want(self, word: str) -> None:
        if not self._took(word):
            self.fail(f"{word} is expected, not {self._here}")

    @property
    def _here(self) -> str:
        return f"{self._next[1][:40]!r}" if self._next[0] else "the end"

    def parsed(self) -> str:
        condition = self._any()
        if self.at < len(self.tokens):
            self.fail(f"AND, OR or the end is expected, not {self._here}")
        return condition

    def _any(self) -> str:
        return self._joined("OR", self._all)

    def _all(self) -> str:
        return self._joined("AND", self._term)

    def _joined(self, word: str, part: Callable[[], str]) -> str:
        parts = [part()]
        while self._took(word):
            parts.append(part())
        return f"({f' {word} '.join(parts)})" if len(parts) > 1 else parts[0]

    def _term(self) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} brackets and NOTs are nested")
        if self._took("NOT"):
            condition = f"NOT {self._term()}"
        elif self._took("("):
            condition = f"({self._any()})"
            self._want(")")
        else:
            condition = self._comparison()
        self.depth -= 1
        return condition

    def _counted(self) -> None:
        self.count += 1
        if self.count > _MOST:
            self.fail(f"it has more than {_MOST:,} comparisons and values")

    def _comparison(self) -> str:
        self._counted()
        left = self._value()
        if sign := self._took(*_SIGNS):
            right = self._value()
            if isinstance(left, FieldColumn) and isinstance(right, FieldColumn):
                return self._fields(left, sign, right)
            if isinstance(left, FieldColumn):
                return self._of(left, sign, str(right))
            if isinstance(right, FieldColumn):
                return self._of(right, _SIGNS[sign], left)
            self.fail("a comparison has no field")
        if not isinstance(left, FieldColumn):
            self.fail(f"a comparison is expected, not {self._here}")
        if self._took("IS"):
            negated = "NOT " if self._took("NOT") else ""
            self._want("NULL")
            return f"`{left.name}` IS {negated}NULL"
        negated = "NOT " if self._took("NOT") else ""
        if self._took("LIKE", "ILIKE"):
            return f"{negated}{self._like(left, _plain(self._literal('text')))}"
        if self._took("BETWEEN"):
            low = self._of(left, ">=", self._literal())
            self._want("AND")
            return f"{negated}({low} AND {self._of(left, '<=', self._literal())})"
        if self._took("IN"):
            self._want("(")
            values = [self._of(left, "=", self._literal())]
            while self._took(","):
                self._counted()
                values.append(self._of(left, "=", self._literal()))
            self._want(")")
            return f"{negated}({' OR '.join(values)})"
        self.fail(f"a comparison is expected, not {self._here}")

    def _value(self) -> FieldColumn | str:
        """Return the column of a field, or a literal."""
        kind, text = self._next
        name = text[1:-1] if kind == "quoted" else text
        if kind not in ("name", "quoted") or (kind == "name" and text.upper() in _WORDS):
            return self._literal()
        self.at += 1
        if self._next == ("sign", "("):
            self.fail(f"{name!r} is a function, and functions are not supported")
        if name in self.fields:
            return self.fields[name]
        alike = [field for field in self.fields if field.strip().casefold() == name.strip().casefold()]
        if len(alike) != 1:
            longer = next((field for field in self.fields if field.casefold().startswith(f"{name} ".casefold())), "")
            self.fail(f"there is no field {name!r}" + (f': write "{longer}" with its quotes' if longer else ""))
        return self.fields[alike[0]]

    def _literal(self, *kinds: str) -> str:
        if not kinds and (word := self._took("TRUE", "FALSE")):
            return word
        kind, text = self._next
        if kind not in (kinds or ("text", "number")):
            self.fail(f"a {'string' if kinds else 'field, string or number'} is expected, not {self._here}")
        self.at += 1
        return text

    def _fields(self, left: FieldColumn, sign: str, right: FieldColumn) -> str:
        numbers = ("int", "float")
        if left.kind != right.kind and not (left.kind in numbers and right.kind in numbers):
            self.fail(f"one field contains {CALLED[left.kind]}, the other {CALLED[right.kind]}")
        if left.kind in numbers and left.kind != right.kind:
            return f"CAST(`{left.name}` AS DOUBLE) {sign} CAST(`{right.name}` AS DOUBLE)"
        return f"{_compared(left)} {sign} {_compared(right)}"

    def _of(self, field: FieldColumn, sign: str, literal: str) -> str:
        """Return the comparison of a field with a literal of its kind."""
        text, is_number = _plain(literal), not literal.startswith("'") and literal not in ("TRUE", "FALSE")
        if field.kind in ("int", "float"):
            return self._number(field, sign, literal)
        if field.kind == "bool":
            if text.upper() not in ("TRUE", "FALSE"):
                self.fail(f"{field.label} contains {CALLED['bool']}, but {literal} is not one")
            return f"`{field.name}` {sign} {text.upper()}"
        if field.kind == "date" and (period := _period(text)):
            return _in_period(f"TRY_CAST(`{field.name}` AS TIMESTAMP)", sign, *period)
        if field.kind == "date":
            self.fail(f"{field.label} contains {CALLED['date']}, but {literal} is not a date: write it as '2024-05-01'")
        if sign in _ORDER and is_number and field.whole:
            return f"TRY_CAST(`{field.name}` AS DOUBLE) {sign} {literal}"
        if sign in _ORDER and is_number:
            self.fail(
                f"{field.label} contains {CALLED[field.kind]}, but {literal} is a number: {field.label} has a value "
                f"that is not a number; write '{text}' to compare strings character by character"
            )
        if sign in _ORDER and field.kind == "text" and "-" in text and _period(text):
            self.fail(
                f"{field.label} contains strings, because one of its values is not a date such as 2024-05-01, but "
                f"{literal} is a date: write all its dates in that form, or compare with LIKE '{text[:7]}%'"
            )
        if field.kind == "list":
            if sign in _ORDER:
                self.fail(
                    f"{field.label} contains {CALLED['list']}, but {sign} compares single values: write =, IN or LIKE"
                )
            member = quoted(f"{BETWEEN}{text.lower()}{BETWEEN}")
            # A list without members, or none at all, has no such member.
            return f"{'NOT ' * (sign != '=')}coalesce(strpos(lower(`{field.name}`), {member}) > 0, FALSE)"
        if field.name == "file" and text and sign not in _ORDER:  # as hits show it, without the folders above
            names = (quoted(text.lower()), quoted(f"/{text.lower()}"))
            return f"{'NOT ' * (sign != '=')}({_compared(field)} = {names[0]} OR ends_with(lower(`file`), {names[1]}))"
        return f"{_compared(field)} {sign} {quoted(text if field.exact else text.lower())}"

    def _number(self, field: FieldColumn, sign: str, literal: str) -> str:
        """Return the comparison of a field of numbers with a number, or with a text that shows one."""
        text = _plain(literal)
        if literal in ("TRUE", "FALSE") or not re.fullmatch(_NUMBER, text):
            self.fail(f"{field.label} contains {CALLED[field.kind]}, but {literal} is not one")
        if not math.isfinite(value := float(text)):
            self.fail(f"{literal} is too large")
        if field.kind == "float":
            return f"`{field.name}` {sign} {value!r}"
        if re.fullmatch(r"[+-]?\d{1,19}", text) and abs(int(text)) < 2**63:
            return f"`{field.name}` {sign} {int(text)}"
        return f"CAST(`{field.name}` AS DOUBLE) {sign} {value!r}"

    def _like(self, field: FieldColumn, pattern: str) -> str:
        if field.kind == "list":
            parts = {"%": f"[^{BETWEEN}]*", "_": f"[^{BETWEEN}]"}
            member = "".join(
                re.escape(sign[1]) if len(sign) > 1 else parts.get(sign, re.escape(sign))
                for sign in _PATTERN_SIGN.findall(pattern.lower())
            )
            # In a group: without one, it would be turned into a pattern of LIKE, with another meaning of backslashes.
            return f"coalesce(regexp_like(lower(`{field.name}`), {quoted(f'{BETWEEN}({member}){BETWEEN}')}), FALSE)"
        if field.kind not in ("text", "date"):
            self.fail(f"{field.label} contains {CALLED[field.kind]}, but LIKE compares strings")
        pattern = _BACKSLASH.sub(r"\\\\", pattern)
        if field.kind == "date":  # as it is written
            return f"`{field.name}` LIKE {quoted(pattern)}"
        return f"{_compared(field)} LIKE {quoted(pattern if field.exact else pattern.lower())}"


def _compared(field: FieldColumn) -> str:
    """Return the column of a field as it is compared with others."""
    if field.kind == "date":
        return f"TRY_CAST(`{field.name}` AS TIMESTAMP)"
    return f"`{field.name}`" if field.exact or field.kind != "text" else f"lower(`{field.name}`)"


def _plain(literal: str) -> str:
    """Return a literal without its quotes."""
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _period(text: str) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end, in UTC, of a year, a month, a day or a moment; None for anything else.

    >>> [one.day for one in _period("2024-02")], _period("soon")
    ([1, 1], None)
    """
    if match := _PERIOD.fullmatch(text):
        year, month = int(match[1]), int(match[2] or 0)
        if not 1 <= year < 9999 or month > 12 or match[2] == "00":
            return None
        begin = datetime(year, month or 1, 1)
        days = monthrange(year, month)[1] if month else 366 if monthrange(year, 2)[1] == 29 else 365
        return begin, begin + timedelta(days=days)
    if not is_date(text):
        return None
    moment = datetime.fromisoformat(text)
    moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    length = timedelta(days=1) if len(text) == 10 else timedelta(minutes=1) if has_no_seconds(text) else _MOMENT
    return moment, min(moment, datetime.max - length) + length


def _in_period(value: str, sign: str, begin: datetime, end: datetime) -> str:
    """Return the comparison of a time with a period."""
    first, last = (f"TIMESTAMP '{one.isoformat()}'" for one in (begin, end))
    inside = f"({value} >= {first} AND {value} < {last})"
    ordered = {"<": f"< {first}", "<=": f"< {last}", ">": f">= {last}", ">=": f">= {first}"}
    if sign in ordered:
        return f"{value} {ordered[sign]}"
    return inside if sign == "=" else f"NOT {inside}"
