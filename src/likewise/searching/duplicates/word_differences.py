"""The words of two similar texts: a negation, number, name, antonym or order that distinguishes them.

Vectors hardly see any of these: 'not open' is near 'open', 10 near 100, 'early' near 'late', and London near Paris.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import resources
from itertools import chain, pairwise, product, starmap
from typing import NamedTuple

from likewise.augment.negation.antonyms import antonyms
from likewise.corpus.clean_text import in_plain_letters
from likewise.evaluation.bm25 import MARKS

REASONS = ("negation", "numbers", "opposites", "names", "order", "the rest", "other words")
"""The differences that tell near texts apart, as `Duplicates.reasons` names them."""

_WORD = re.compile(rf"(?<![\w.,:/−-])[−-]?\d+(?:[.,:/]\d+)*(?!\w)|[\w{MARKS}]+(?:[.,:]\d+)*|[%‰€$£¥₽]|°\w?")
_HALF_DAY = re.compile(r"(?<=\d)[ \u00a0]?([ap])\.[ \u00a0]?m\b\.?", re.IGNORECASE)
_MARKS_ALONE = frozenset("< > + - − ≤ ≥ <= >= = == !=".split())
"""Symbols that have a meaning only if they stand alone."""
_SIGNS = frozenset("👍 👎 ✅ ✔ ✓ ☑ ❌ ✖ ✗ ✘ ☐ 🟢 🔴 ≠ → ← ↑ ↓ ♀ ♂ × ÷ 📈 📉 🙂 😀 😊 🙁 ☹ 😞 😡".split())
_SIGNED = re.compile(r"\w[+#]+$")
_BETWEEN_NAMES = re.compile(r"[\s,;()<>\"]+")
_FILE = re.compile(r"[^\W\d_][^\W_]{1,3}")
"""The ending of a file: more than one letter, to exclude 'e.g.'."""
_SHORT_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_DIGIT = re.compile(r"[\d%‰]")
_THOUSANDS = re.compile(r"[−-]?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?")
_NAME = re.compile(r"(?<=[\w,;:)] )[^\W\d_a-z]\w+")
_SENTENCE = re.compile(r"(?<=[.!?…।؟])\s+|(?<=[。！？])")
_NO_NAMES = frozenset("i me my it he she we they you your hi hello dear please thanks".split())
_UNITS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
"""'One' is skipped, as it is usually not a number."""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBER_WORDS = {
    "percent": "%",
    **{word: str(number) for number, word in enumerate(_UNITS.split(), 2)},
    **{word: f"{number}0" for number, word in enumerate(_TENS.split(), 3)},
    **dict(zip("1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th".split(), _ORDINALS.split(), strict=True)),
}
_ALIKE = 0.75
"""From this ratio on a word is a misspelling of a name."""
_NEARLY_ALL = 0.8
"""From this share of words in common on, the order of the words counts."""
_LEAST_LETTERS = 5
"""Letters of a word from which on one wrong letter is a misspelling; of shorter ones it makes another word."""
_NEGATIONS = frozenset(
    "not no never none nor neither nobody nothing nowhere cannot without hardly barely scarcely dont doesnt didnt cant "
    "wont isnt arent wasnt werent hasnt havent hadnt couldnt shouldnt wouldnt "
    "nicht kein keine keinen keiner keinem nie niemals ohne pas jamais sans nunca sin non mai senza niet geen nooit "
    "não sem".split()
)
"""Of English, and the commonest ones of German, French, Spanish, Italian, Dutch and Portuguese."""
_PLAIN = frozenset(
    "a an the this that these those i you he she it we they me him her us them my your his its our their is are was "
    "were be been being am do does did have has had can could will would shall should may might must and or but if so "
    "as at by for from in into of on onto to with about what which who whom whose when where why how please just also "
    "really very quite then than there here".split()
)
"""Words of grammar, in whose place another one may stand."""
_PERSONS = {word: words[0] for words in ("i me", "he him", "she her", "we us", "they them") for word in words.split()}


class Wording(NamedTuple):
    """The words of a text that decide whether a near text says the same.

    Attributes:
        order: Words in their order.
        words: Counts of the words.
        numbers: Words with a digit, and percent signs, in their order.
        negations: Number of negations.
        names: Words with a capital inside a sentence.
        addresses: Mail addresses, files, paths and names of programs, such as max_size.
        symbols: Symbols that may be the opposite of another symbol, such as thumbs and comparisons.
    """

    order: tuple[str, ...]
    words: Counter[str]
    numbers: tuple[str, ...]
    negations: int
    names: frozenset[str]
    addresses: frozenset[str]
    symbols: frozenset[str]


@lru_cache(maxsize=1 << 15)
def wording(text: str) -> Wording:
    """Return the words of a text, and what among them decides.

    >>> wording("They didn't pay 1,000 or -20.5, and never will.").numbers
    ('1000', '-20.5')
    >>> wording("They didn't pay 1,000 or 20.5, and never will.").negations
    2
    >>> wording("two weeks ago, 1½ cups").numbers, sorted(wording("It was Mr Smith, and It hurt").names)
    (('2', '1', '0.5'), ['mr', 'smith'])
    """
    text = in_plain_letters(unicodedata.normalize("NFC", text))
    plain = "".join(map(_spelt_out, _HALF_DAY.sub(r" \1m", text)))
    order = tuple(
        _NUMBER_WORDS.get(word, word.replace("−", "-")).replace(",", "" if _THOUSANDS.fullmatch(word) else ".")
        for word in _WORD.findall(_SHORT_NOT.sub(" not", plain).casefold().replace("_", " "))
    )
    words = Counter(order)
    names = frozenset(word.casefold() for word in _NAME.findall(text)) - _NO_NAMES
    negations = sum(count for word, count in words.items() if word in _NEGATIONS)
    numbers = tuple(word for word in order if _DIGIT.search(word))
    tokens = (token.strip("'.:!?") for token in _BETWEEN_NAMES.split(text.casefold()))
    symbols = _SIGNS.intersection(text) | _MARKS_ALONE.intersection(text.split())
    return Wording(order, words, numbers, negations, names, frozenset(filter(_is_address, tokens)), symbols)


def _is_address(token: str) -> bool:
    """Return whether a word is the address of a mail, a file or a path, or a name of programs; no web page is.

    >>> [_is_address(token) for token in ("sales@a.org", "file.txt", "c:\\\\data", "max_size", "e.g", "and/or")]
    [True, True, True, True, False, False]
    """
    if "://" in token or token.startswith("www."):
        return False
    stem, _, ending = token.rpartition(".")
    is_name = "@" in token[1:] or "\\" in token or "_" in token.strip("_") or _SIGNED.search(token)
    return bool(is_name or (stem and _FILE.fullmatch(ending)))


def same_words(text: str) -> bytes:
    """Return a key of a text's words, regardless of case, punctuation and white space; b"" without words.

    >>> same_words("I lost my card!!") == same_words("i lost  my card"), same_words("C++") == same_words("C#")
    (True, False)
    >>> same_words("\uff23\uff41\uff52\uff44") == same_words("card")
    True
    """
    own = wording(text)
    said = repr((own.order, sorted(own.addresses), sorted(own.symbols)))
    return blake2b(said.encode("utf-8", "replace"), digest_size=16).digest() if own.order else b""


def _spelt_out(char: str) -> str:
    """Return a character; a fraction in one character, such as ½, as its own number."""
    return f" {unicodedata.numeric(char):g} " if unicodedata.category(char) == "No" else char


@cache
def exclusive_words() -> dict[str, list[tuple[int, int]]]:
    """Return the classes of each word of `opposites.txt`: number of the class, and of the meaning in it.

    >>> exclusive_words()["left"][0][0] == exclusive_words()["right"][0][0]
    True
    """
    classes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    text = resources.files(__package__).joinpath("opposites.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for number, line in enumerate(lines):
        for meaning, words in enumerate(line.split("|")):
            for word in words.split():
                classes[word].append((number, meaning))
    return dict(classes)


@lru_cache(maxsize=1 << 16)
def exclude(first: str, second: str) -> bool:
    """Return whether two words exclude each other: opposites, or different members of a class such as the weekdays.

    The words come from `opposites.txt` and from the list of antonyms.

    >>> exclude("left", "right"), exclude("left", "arrives"), exclude("monday", "tuesday"), exclude("open", "opened")
    (True, True, True, False)
    """
    meanings = dict(exclusive_words().get(first, ()))
    other = dict(exclusive_words().get(second, ()))
    same = meanings.keys() & other.keys()
    if any(meanings[number] == other[number] for number in same):
        return False
    ways = (
        (first, second),
        (second, first),
    )  # a word has one antonym in the list, and may be the antonym of several words
    return bool(same) or any(antonyms().get(word) == other for word, other in ways)


def _has_opposites(word: str) -> bool:
    return word in exclusive_words() or word in antonyms()


def shared(first: Wording, second: Wording) -> float:
    """Return the share of the words of two texts that both have: |A ∩ B| / |A ∪ B| with counts, 1 without words.

    >>> shared(wording("the old cat"), wording("The cat!"))
    0.6666666666666666
    """
    union = (first.words | second.words).total()
    return (first.words & second.words).total() / union if union else 1.0


def difference(first: Wording, second: Wording, known: bool = True) -> str:
    """Return the difference that distinguishes two similar texts, one of `REASONS`, or "" for none.

    A name counts if the other text has another word in its position, of which it is not a misspelling. The order of the
    words counts if nearly all words are the same, unless a part of the text was moved as a whole.

    Args:
        known: Whether the language has lists of words. Otherwise, texts are duplicates only if their words are equal,
            except for misspellings.

    >>> difference(wording("The card has arrived."), wording("The card has not arrived."))
    'negation'
    >>> difference(wording("I paid 10 pounds"), wording("I paid 100 pounds"))
    'numbers'
    >>> difference(wording("Turn the left valve."), wording("Turn the right valve."))
    'opposites'
    >>> difference(wording("He lived in Paris."), wording("He lived in London."))
    'names'
    >>> difference(wording("He lived in London."), wording("He lived in Lodnon."))
    ''
    >>> difference(wording("Write to sales@a.org"), wording("Write to help@a.org"))
    'names'
    >>> difference(wording("The dog bit the man"), wording("The man bit the dog"))
    'order'
    >>> difference(wording("Yesterday I lost my card"), wording("I lost my card yesterday!"))
    ''
    >>> difference(wording("Das Ventil öffnen"), wording("Das Ventil schließen"), known=False)
    'other words'
    """
    if first.negations != second.negations:
        return "negation"
    if first.numbers != second.numbers:
        return "numbers"
    left, right = first.words - second.words, second.words - first.words
    mine = product(filter(_has_opposites, left), right)
    others = product(left, filter(_has_opposites, right))
    if any(
        starmap(exclude, chain(mine, others, product(first.symbols - second.symbols, second.symbols - first.symbols)))
    ):
        return "opposites"
    if not known and not _misspelt(left, right):
        return "other words"
    if first.addresses - second.addresses and second.addresses - first.addresses:
        return "names"
    if _other_name(first, left, right) or _other_name(second, right, left):
        return "names"
    if _other_step(first.order, second.order):
        return "opposites"
    if _other_subject(first.order, second.order):
        return "other words"
    if _other_roles(first.order, second.order):
        return "order"
    return "order" if shared(first, second) >= _NEARLY_ALL and not _same_order(first, second) else ""


def _other_name(wording: Wording, own: Counter[str], others: Counter[str]) -> bool:
    """Return whether a text has a name where its near text has other words.

    Args:
        own: Words of this text alone.
        others: Words of the other text alone.
    """
    lacking = (name for name in wording.names if name in own)
    return bool(others) and any(not any(_alike(name, word) for word in others) for name in lacking)


def _alike(word: str, other: str) -> bool:
    return SequenceMatcher(None, word, other).ratio() >= _ALIKE


def _other_subject(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether texts of the same words but for the first begin with another thing, such as a name."""
    if not (first and second) or first[0] == second[0] or tuple(first[1:]) != tuple(second[1:]):
        return False
    return not {first[0], second[0]} & _PLAIN and not _alike(first[0], second[0])


def _other_step(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether something goes by a number in one text, and to that number in the other.

    >>> _other_step("rates rose by 5 %".split(), "rates rose to 5 %".split())
    True
    """
    steps = [{pair for pair in pairwise(order) if pair[0] in ("by", "to")} for order in (first, second)]
    only, others = steps[0] - steps[1], steps[1] - steps[0]
    return any(_DIGIT.search(to) and ("to" if by == "by" else "by", to) in others for by, to in only)


def _other_roles(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the same words are said of the same persons in other roles.

    >>> _other_roles("i lent him money".split(), "he lent me money".split())
    True
    """
    if len(first) != len(second) or any(
        word != other and not (word in _PERSONS and other in _PERSONS)
        for word, other in zip(first, second, strict=True)
    ):
        return False
    here, there = ([_PERSONS[word] for word in order if word in _PERSONS] for order in (first, second))
    return here != there and sorted(here) == sorted(there)


def _same_order(first: Wording, second: Wording) -> bool:
    """Return whether the words that both texts have follow each other alike, if a part at the end may come first."""
    few, many = sorted(
        (
            [word for word in order if word in others]
            for order, others in ((first.order, second.words), (second.order, first.words))
        ),
        key=len,
    )
    rest = iter(many)
    if all(word in rest for word in few):  # as where an article is skipped
        return True
    common = first.words & second.words
    here, there = (_in_common(wording.order, common) for wording in (first, second))
    twice, size = here + here, len(here)
    return any(twice[begin : begin + size] == there for begin in range(size) if twice[begin] == there[0])


def _in_common(order: Sequence[str], common: Counter[str]) -> list[str]:
    left, matched = common.copy(), []
    for word in order:
        if left[word] > 0:
            left[word] -= 1
            matched.append(word)
    return matched


def _misspelt(left: Counter[str], right: Counter[str]) -> bool:
    """Return whether each word that only one text has is a misspelling of one that only the other has."""
    mine, others = sorted(left.elements()), sorted(right.elements())
    if len(mine) != len(others):
        return False
    for word in mine:
        match = next((other for other in others if _one_letter_off(word, other)), None)
        if match is None:
            return False
        others.remove(match)
    return True


def _one_letter_off(word: str, other: str) -> bool:
    """Return whether two long words differ by a letter that is written twice, or by two that are swapped.

    Another letter makes another word in many languages: anmelden and abmelden, wurde and würde, pagar and pegar.

    >>> _one_letter_off("schliessen", "schliesen"), _one_letter_off("kein", "ein"), _one_letter_off("letter", "lettre")
    (True, False, True)
    >>> _one_letter_off("включить", "выключить"), _one_letter_off("anmelden", "abmelden")
    (False, False)
    """
    if min(len(word), len(other)) < _LEAST_LETTERS or abs(len(word) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    rest, others = word[start:], other[start:]
    if len(word) == len(other):
        return rest[:2] == others[:2][::-1] and rest[2:] == others[2:]
    longer, more, less = (word, rest, others) if len(word) > len(other) else (other, others, rest)
    return more[1:] == less and longer[start] in longer[max(0, start - 1) : start]


@lru_cache(maxsize=1 << 12)
def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text.

    >>> sentences_of("It leaks. Please help!\\nRegards")
    ('It leaks.', 'Please help!', 'Regards')
    """
    parts = (part.strip() for line in text.splitlines() for part in _SENTENCE.split(line))
    return tuple(part for part in parts if part)


def the_rest(first: str, second: str) -> tuple[str, str]:
    """Return two texts without their common sentences.

    >>> the_rest("Dear team. The pump leaks.", "dear team! The fan is loud.")
    ('The pump leaks.', 'The fan is loud.')
    """
    keys = [[(wording(sentence).order, sentence) for sentence in sentences_of(text)] for text in (first, second)]
    common = Counter(key for key, _ in keys[0]) & Counter(key for key, _ in keys[1])
    rests = []
    for sentences in keys:
        left, rest = common.copy(), []
        for key, sentence in sentences:
            if left[key] > 0:
                left[key] -= 1
            else:
                rest.append(sentence)
        rests.append(" ".join(rest))
    return rests[0], rests[1]
