"""The prompt for a language model, and the queries in its answer."""

from __future__ import annotations

import re

KINDS = ("title", "keywords", "question")
LONGEST = 150
"""Words of a passage that are shown to the model."""
EXAMPLES = (
    (
        "The heat pump takes warmth from the outside air even in winter. Below minus fifteen degrees its output falls, "
        "and an electric rod in the tank takes over. This raises the bill, which is why the tank should be set no "
        "higher than 48 degrees.",
        "Heat pump output in very cold weather",
        "low temperatures, electric rod, tank setting, cost",
        "why does heating cost more when it is very cold outside?",
    ),
    (
        "A member may resign by writing to the secretary. The resignation takes effect at the end of the quarter, and "
        "fees already paid are not returned. A member who owes money remains liable for it.",
        "Resignation of members",
        "leaving the association, notice period, refund of fees, debts",
        "do I get my money back if I leave in the middle of the year?",
    ),
)
"""Passages with their title, keywords and question; made up."""
INSTRUCTION = (
    "You write what people type into a search box who look for a passage without having read it: a title, keywords, "
    "and three different questions that the passage answers. Use your own words, and do not copy its sentences."
)
FORM = "\n\nAnswer in five lines: Title: ..., Keywords: ..., and three of Question: ..."
"""What a server is asked for at the end, as it writes all queries of a passage at once."""
_MOST_WORDS = {"title": 16, "keywords": 16, "question": 30}
_FEWEST_WORDS = {"title": 2, "keywords": 2, "question": 4}


def quoted(text: str) -> str:
    """Return a passage for the prompt: on one line, truncated to `LONGEST` words."""
    return " ".join(text.split()[:LONGEST])


def messages(text: str, form: str = "") -> list[dict[str, str]]:
    """Return the conversation that asks a chat model for the queries of a passage, the form in words at the end."""
    conversation = [{"role": "system", "content": INSTRUCTION}]
    for passage, *queries in EXAMPLES:
        answer = "\n".join(f"{kind.capitalize()}: {query}" for kind, query in zip(KINDS, queries, strict=True))
        conversation += [{"role": "user", "content": passage}, {"role": "assistant", "content": answer}]
    return [*conversation, {"role": "user", "content": quoted(text) + form}]


def answered(text: str) -> list[tuple[str, str]]:
    """Return the kinds and texts of the queries in the answer of a chat model.

    >>> answered("**Title:** A pump\\n- Question: 1. why does it fail?\\nI hope this helps")
    [('title', 'A pump'), ('question', 'why does it fail?')]
    """
    queries = []
    for line in text.splitlines():
        match = re.match(r"[\s*#>-]*(title|keywords|question)s?[\s\d*]*:[*\s]*(?:\d+[.)]\s*)?(.*)", line, re.IGNORECASE)
        if match and (query := cleaned(match[1].lower(), match[2])):
            queries.append((match[1].lower(), query))
    return list(dict.fromkeys(queries))


def cleaned(kind: str, text: str) -> str:
    """Return the query in the output of a model; "" if there is none.

    The text after the first question mark, repeated keywords and keywords after the sixth, and quotation marks are
    removed. Repetitive, very short or incomplete outputs are not queries.

    >>> cleaned("keywords", "pump, Pump, valve, pump")
    'pump, valve'
    >>> cleaned("question", "how does a pump fail? Question: why"), cleaned("question", "how does a pump that")
    ('how does a pump fail?', '')
    """
    text = " ".join(text.split()).strip("\"'`* ")
    if kind == "keywords":
        parts = [part.strip(" .;") for part in text.split(",")]
        unique: dict[str, str] = {}
        for part in filter(None, parts):
            unique.setdefault(part.casefold(), part)
        text = ", ".join(list(unique.values())[:6])
    elif kind == "question":
        before, mark, _ = text.partition("?")
        text = before.strip() + mark if mark else ""
    words = text.split()
    triples = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    if len(triples) > len(set(triples)) or not _FEWEST_WORDS[kind] <= len(words) <= _MOST_WORDS[kind]:
        return ""
    return text
