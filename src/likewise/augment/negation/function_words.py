"""The closed-class words that the negation rules use, and the article that replaces 'no'."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


BE = listed("am is are was were ai be been being 'm 're 's ’m ’re ’s")
HAVE = listed("have has had having 've 's 'd ’ve ’s ’d")
DO = listed("do does did")
MODALS = listed("""can could may might must shall should will would ought ca wo sha 'll 'd ’ll ’d cannot dare need""")
# What is left of an auxiliary in front of "n't".
STUMPS = {"wo": "will", "ca": "can", "sha": "shall"}
OPERATORS = BE | HAVE | DO | MODALS

PRONOUNS = listed("i you he she it we they")
NOT = frozenset(("not", "n't", "n’t"))

SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj", "csubjpass", "expl"))
AUXILIARIES = frozenset(("aux", "auxpass"))
FINITE_TAGS = frozenset(("VBD", "VBZ", "VBP", "MD"))
VERB_TAGS = frozenset(("VB", "VBD", "VBZ", "VBP", "VBN", "VBG", "MD"))

# Adverbs that stay in front of the negation: 'is also not', 'probably did not'. They speak about the whole
# statement, or (also) read wrongly inside the negation. Any other adverb follows it: 'does not usually play'.
BEFORE_NOT = listed(
    """also probably possibly perhaps maybe certainly surely undoubtedly doubtless reportedly allegedly
    apparently evidently presumably supposedly purportedly seemingly therefore thus hence however
    instead otherwise consequently accordingly nevertheless nonetheless moreover furthermore meanwhile
    fortunately unfortunately sadly clearly obviously indeed similarly likewise then sometimes thereby
    once"""
)
# Under a negation 'some' becomes 'any', and back when the negation goes.
TO_ANY = {f"some{ending}": f"any{ending}" for ending in ("", "one", "body", "thing", "where")}
TO_SOME = {value: key for key, value in TO_ANY.items()}
# A negative pronoun and what is there when the sentence is affirmed.
NEGATIVE_PRONOUNS = {
    "nobody": "somebody",
    "no-one": "someone",
    "nothing": "something",
    "nowhere": "somewhere",
    "none": "some",
}
# An indefinite subject is negated in place: 'Someone came' and 'Anyone can come' to 'No one'.
_NONE = {"one": "no one", "body": "nobody", "thing": "nothing"}
TO_NO = {first + last: no for first in ("some", "any") for last, no in _NONE.items()}
TO_NO |= {"any": "no", "either": "neither"}
# 'All birds fly' to 'Not all birds fly': with the verb negated it could be read as 'no birds fly'.
UNIVERSALS = frozenset(("all", "every", "everyone", "everybody", "everything"))

# Nouns without a plural: 'no evidence' becomes 'some evidence', while 'no sign' becomes 'a sign'.
MASS_NOUNS = listed(
    """evidence information water money knowledge doubt time help proof research work progress damage
    support interest love food music news air oil gold silver power hope trouble success access rain
    snow traffic furniture equipment advice luck homework housework electricity energy light fuel gas
    land space room sense use value need point fun harm faith trust fear pain peace justice truth
    blood milk bread meat rice sugar salt coffee tea wine beer consensus contact connection experience
    influence control authority intention respect sympathy pressure protection opposition resistance
    competition recognition compensation mention meaning life sleep agreement education training alcohol
    sound smoke fire ice notice stucco legislation plaster sunlight heat weather literature poetry art violence
    existence importance assistance patience insurance significance relevance confidence intelligence
    interference guidance maintenance tolerance acceptance assurance security stability activity
    capacity content"""
)
MASS_ENDINGS = ("ness", "ware")

VOWEL_SOUND_EXCEPTIONS = ("uni", "use", "usu", "eu", "one", "once", "ut")
SILENT_H = ("hour", "honest", "honour", "honor", "heir")


def is_mass(word: str) -> bool:
    """Return whether a noun in the singular takes no 'a', by a list and by its ending.

    >>> is_mass("evidence"), is_mass("sadness"), is_mass("car")
    (True, True, False)
    """
    word = word.lower()
    return word in MASS_NOUNS or (len(word) > 5 and word.endswith(MASS_ENDINGS))


def indefinite(word: str) -> str:
    """Return 'a' or 'an' for a word, by its first sound as guessed from the spelling.

    >>> [indefinite(word) for word in ("car", "apple", "hour", "university", "FBI")]
    ['a', 'an', 'an', 'a', 'an']
    """
    if len(word) > 1 and word.isupper():
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    word = word.lower()
    if word.startswith(SILENT_H):
        return "an"
    # 'un' before 'i' is 'unique', before another vowel or consonant 'uninteresting' or 'unfair'.
    if word.startswith(VOWEL_SOUND_EXCEPTIONS) and not word.startswith(("unin", "unim", "unid", "utt", "uto", "utm")):
        return "a"
    return "an" if word[:1] in "aeiou" else "a"


def article(noun: Token, following: Token) -> str:
    """Return 'a', 'an' or 'some' for the noun that had 'no'; `following` is the word right after it."""
    if noun.tag_ not in ("NN", "NNP") or is_mass(noun.text):
        return "some"
    return indefinite(following.text)
