"""Rule-based negation of English sentences, in correct English (SNCSE, section 3).

Parsed by spaCy, with verb forms from lemminflect; both are loaded at the first sentence.
"""

from likewise.augment.negation.antonyms import may_have_opposites, opposites
from likewise.augment.negation.english import NotEnglishError
from likewise.augment.negation.rules import RULES_VERSION, Negation, negate, negate_batch
from likewise.augment.negation.stream import cached_negations

__all__ = [
    "RULES_VERSION",
    "Negation",
    "NotEnglishError",
    "cached_negations",
    "may_have_opposites",
    "negate",
    "negate_batch",
    "opposites",
]
