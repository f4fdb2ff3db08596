"""Queries with an exclusion, split into the request and the exclusion.

Encoders and BM25 treat excluded words like requested words. Only explicit requests for an exclusion are cues: a bare
'other than', 'except' or 'without' often belongs to the topic, as does 'avoiding' after a preposition. All patterns are
matched on a query with normalized spaces, in linear time.
"""

from __future__ import annotations

import re

_MENTIONING = r"(?:mentioning|including|discussing|referring to|(?:any )?(?:mention|reference|discussion)s? (?:of|to))"
_CUE = re.compile(
    rf"(?<![\w'’-])(?:(?P<order>(?:do not|don['’]t) (?:mention|include|discuss|talk about|refer to))"
    rf"|excluding|not {_MENTIONING}|leaving out|without {_MENTIONING}|avoiding(?: {_MENTIONING})?|(?-i:AND NOT))(?= )",
    re.IGNORECASE,
)
_END = re.compile(r"[;()\[\]—]|[,:?!](?!\w)|(?<!\.\w)\.(?!\w)|(?<= )[-–](?= )")
"""A stop within a word, a number or an abbreviation, such as node.js, 3.5 and U.S., ends nothing."""
_ITEM = r"(?: [^\s,;:?!()\[\]]*[^\s,;:?!()\[\].]){1,3}?"
_LIST = re.compile(rf"(?:,(?! (?:and|or|&) ){_ITEM}){{1,20}},? (?:and|or|&){_ITEM}(?=$|[,.;:?!)\]])")
"""The rest of a list behind its first comma: ', B and C', of up to three words each."""
_TOPICAL = frozenset(
    "about above across after against along among around as at because before behind below beside between beyond by "
    "concerning despite during for from how in inside into like near of off on onto out over regarding since than "
    "through to toward towards under until upon via versus vs whether with within "
    "is are was were be been being am 's isn't aren't wasn't weren't".split()
)
"""Words behind which a cue is a part of the topic: prepositions, 'how', and the forms of 'be'."""
_RELATIVE = frozenset("that which who whose what why where".split())
"""Words behind which 'do not include' tells of something, and is no order."""
_JOINING = frozenset("and but or while whilst yet though please also".split())
_NO_ITEM = _TOPICAL | _RELATIVE | {"please", "also", "but"}
"""Words that no entry of a list has: behind a comma they go on with the question."""
_EMPTY = frozenset(
    "a an the this that these those and but or while please all any some something anything everything things thing "
    "me us i we you it is are be to of for in on give show tell find list search get want need about".split()
)
"""Words that ask for nothing by themselves."""


def divided(query: str) -> tuple[str, str]:
    """Split a query into the request and the exclusion, which is "" if nothing is excluded.

    An excluded phrase ends at the next punctuation mark or at the end of its brackets; a list of short phrases ends
    with the list.

    >>> divided("What did Nietzsche write (excluding Zarathustra) and when?")
    ('What did Nietzsche write and when?', 'Zarathustra')
    >>> divided("Tell me about almonds but do not mention their place of origin")
    ('Tell me about almonds', 'their place of origin')
    >>> divided("tips for avoiding burnout")
    ('tips for avoiding burnout', '')
    """
    text = " ".join(query.split())
    remaining, excluded, at = [""], [], 0
    for cue in _CUE.finditer(text):
        if cue.start() < at:
            continue
        before = text[at : cue.start()]
        if not _is_order(cue, f"{remaining[-1]}{before}"):
            continue
        closing = {"(": ")", "[": "]"}.get(before.rstrip()[-1:])
        end = text.find(closing, cue.end()) if closing else -1  # a phrase in brackets ends with them
        if end < 0:
            end = match.start() if (match := _END.search(text, cue.end())) else len(text)
        if (rest := _LIST.match(text, end)) and not _NO_ITEM & {*rest[0].replace(",", "").lower().split()}:
            end = rest.end()
        if phrase := text[cue.end() : end].strip():
            excluded.append(phrase)
            remaining.append(_without_joint(before))
            at = end + (text[end : end + 1] in {",", ")", "]", "-", "–", "—"})
    remaining.append(text[at:])
    left = re.sub(r" ([.?!])", r"\1", " ".join(" ".join(remaining).split()))
    if not excluded or not any(word not in _EMPTY for word in re.findall(r"\w+", left.lower())):
        return query, ""
    return left, " ".join(excluded)


def _is_order(cue: re.Match[str], before: str) -> bool:
    """Return whether a cue says what to leave out, by the words before it in its clause."""
    clause = _END.split(before.lower())[-1].split()
    last = clause[-1] if clause else ""
    if cue["order"]:
        return (not last or last in _JOINING) and not _RELATIVE & {*clause}
    if last in _TOPICAL or last.endswith(("'s", "’s", "'re", "’re")):
        return False
    return cue[0].lower() != "avoiding" or bool(last) or before.rstrip().endswith((",", ";", "("))


def _without_joint(text: str) -> str:
    """Return the text before a cue without the conjunction and the brackets that led to it."""
    text = text.rstrip(" ,;([-–—")
    head, _, last = text.rpartition(" ")
    return head.rstrip(" ,;([-–—") if last.lower() in _JOINING else text
