"""Verb forms, from lemminflect: the base of a finite verb, and a finite verb from its base."""

from __future__ import annotations

from functools import lru_cache

# Where the library lists a rarer form first, or none.
_FORMS = {
    ("be", "VBZ"): "is",
    ("be", "VBP"): "are",
    ("be", "VBD"): "was",
    ("weave", "VBD"): "wove",
    ("learn", "VBD"): "learned",
}
_BASES = {"founded": "found", "lay": "lie", "dove": "dive", "span": "span", "lied": "lie"}


@lru_cache(maxsize=50_000)
def base(form: str, tag: str = "VBD") -> str:
    """The base form of a verb form.

    `tag` (VBD, VBZ, VBP, VBN or VB) decides between two readings: 'found' as a past is 'find'.

    >>> base("became"), base("found"), base("found", "VB"), base("has", "VBZ")
    ('become', 'find', 'found', 'have')
    """
    import lemminflect

    word = form.lower()
    if tag in ("VB", "VBP"):
        return word
    if word in _BASES and tag in ("VBD", "VBN"):
        return _BASES[word]
    candidates: tuple[str, ...] = lemminflect.getLemma(word, "VERB") or (word,)
    # The first lemma that has this form under this tag; the library's order breaks ties.
    for lemma in candidates:
        if word in lemminflect.getInflection(lemma, tag):
            return lemma
    return candidates[0]


@lru_cache(maxsize=50_000)
def inflect(lemma: str, tag: str) -> str:
    """The form of a base verb under a Penn tag (VBD past, VBZ third person, VBP present, VBN, VB).

    >>> inflect("become", "VBD"), inflect("have", "VBZ"), inflect("lie", "VBD")
    ('became', 'has', 'lay')
    """
    import lemminflect

    word = lemma.lower()
    if (word, tag) in _FORMS:
        return _FORMS[(word, tag)]
    if tag in ("VB", "VBP"):
        return word
    forms: tuple[str, ...] = lemminflect.getInflection(word, tag)
    if not forms:
        return word
    # The library lists American and British doubles ('traveled', 'travelled'); the first is the American one.
    return forms[0]


@lru_cache(maxsize=50_000)
def finite_tag(form: str, tag: str, third_singular: bool) -> str | None:
    """The tense a lexical verb shows by its own form: VBD, VBZ or VBP, None if the form cannot be finite.

    The form outranks the tagger, which mistakes a past for a participle and the other way round. 'put' and
    its like are the same in past and present: with a subject in the third person they can only be past.

    >>> finite_tag("featured", "VBN", True), finite_tag("put", "VBP", True), finite_tag("taken", "VBN", True)
    ('VBD', 'VBD', None)
    """
    import lemminflect

    word = form.lower()
    lemmas: tuple[str, ...] = lemminflect.getLemma(word, "VERB") or (word,)
    fits = {kind for lemma in lemmas for kind in ("VBD", "VBZ", "VB") if word in lemminflect.getInflection(lemma, kind)}
    if tag in ("VBD", "VBZ"):
        # Trust the tag unless the form speaks clearly against it.
        if tag in fits or not fits:
            return tag
        return "VBZ" if "VBZ" in fits else "VBD" if "VBD" in fits else "VBP"
    if tag == "VBN":
        return "VBD" if "VBD" in fits else None
    if tag == "VBG":
        return None
    if "VBD" in fits and (third_singular or "VB" not in fits):
        return "VBD"
    if "VB" in fits or (tag in ("VB", "VBP") and not fits):
        return "VBP"
    return "VBZ" if "VBZ" in fits else None


def do_form(tag: str) -> str:
    """The form of 'do' that carries the tense of a verb with this tag.

    >>> do_form("VBD"), do_form("VBZ"), do_form("VBP")
    ('did', 'does', 'do')
    """
    return {"VBD": "did", "VBZ": "does"}.get(tag, "do")


def tag_of_do(form: str) -> str:
    """The tag that a verb takes over when this form of 'do' is removed.

    >>> tag_of_do("did"), tag_of_do("does"), tag_of_do("do")
    ('VBD', 'VBZ', 'VBP')
    """
    return {"did": "VBD", "does": "VBZ"}.get(form.lower(), "VBP")
