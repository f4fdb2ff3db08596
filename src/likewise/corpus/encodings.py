"""The encoding of a file, detected from its bytes unless it is given."""

import codecs
import re
from collections.abc import Iterable

AUTO = "auto"
"""UTF-8, or what the bytes look like if they are not."""

BINARY = ""
"""Instead of an encoding: the bytes are no text."""

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHERS = (b"\xd0\xcf\x11\xe0", b"\xfd7zXZ", b"7z\xbc\xaf")  # an old Office file, archives
_CANDIDATES = (
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859-2 iso8859-5 iso8859-6 iso8859-7 koi8-r "
    "koi8-u cp866 cp932 euc_jis_2004 gb18030 big5hkscs cp949 johab cp874"
).split()
_SEVEN_BITS = {"iso2022_jp": (b"\x1b$B", b"\x1b$@", b"\x1b(J"), "iso2022_kr": (b"\x1b$)C",)}
_FEW = 3  # bytes beyond ASCII that say nothing: a degree sign, one name
_EAST_ASIAN = ("cp932", "euc_jis_2004", "gb18030", "big5hkscs", "cp949", "johab")
_OTHER_SCRIPTS = ("cp1251 koi8-r koi8-u cp866 iso8859-5 cp1253 iso8859-7 cp1255 cp1256 iso8859-6 cp874").split()
_WORDS_OF_WEST = frozenset(
    b"le la les des est et dans pour que qui une un il elle pas sur au du ce en di che per non del della sono los las "
    b"de por con para una es der die das und ist nicht mit ein eine os as da em het een".split()
)
_WORDS_OF_CENTRE = frozenset(
    b"na nie jest w z i to je v s za ve som sa nem az hogy egy ez meg is mint csak vagy volt od po pre ako tak ale "
    b"ktory jak sie aby do o".split()
)
_WESTERN = frozenset("äöüÄÖÜßéèêëàâáãåçñóòôõíìîïúùûýæøœÉÈÀÁÂÇÑÓÍÚÅÆØŒ€£°µ§²³±×½¼«»„“”‚‘’–—…¿¡\u00a0")
_EVIDENCE = 4096  # bytes that a detector learns no more from
_BEGINNING = 1 << 16
_ALPHABETS = [
    set(letters + letters.upper())
    for letters in ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšž")
]
"""Letters of Polish, Czech, Slovak, Hungarian, Romanian and Croatian."""


def named_encoding(name: str, sample: bytes, complete: bool = True) -> str:
    """Return Python's name of a file's encoding, from the given name and the beginning of the file.

    Args:
        name: Encoding, or `AUTO`. A byte order mark takes precedence.
        sample: First bytes of the file.
        complete: Whether the sample is the whole file.

    Returns:
        The encoding, which is "utf-8" for valid UTF-8; `BINARY` if `AUTO` detects no text.

    >>> named_encoding("auto", "Größe: 5 µm".encode("cp1252")), named_encoding("auto", "Größe".encode())
    ('cp1252', 'utf-8')
    """
    marked = next((encoding for mark, encoding in _MARKS if sample.startswith(mark)), None)
    if name != AUTO:
        return "utf-8" if marked == "utf-8" else _as_browsers(name, sample, complete)
    if marked:
        return marked
    if sample.startswith(_OTHERS):
        return BINARY
    if b"\0" in sample:
        return _wide(sample, complete)
    if _is_in("utf-8", sample, complete):
        escaped = [name for name, marks in _SEVEN_BITS.items() if any(mark in sample for mark in marks)]
        return next((name for name in escaped if sample.isascii() and _is_in(name, sample, complete)), "utf-8")
    lines = [line for line in sample.split(b"\n") if not line.isascii()]
    if not complete and len(lines) > 1:
        lines.pop()  # it is cut
    if 2 * sum(_is_in("utf-8", line) for line in lines) >= len(lines):
        return "utf-8"  # in which some lines are damaged
    return legacy_encoding(lines)


def legacy_encoding(lines: Iterable[bytes]) -> str:
    """Return the encoding of lines that are not UTF-8, by chardet; short lines are most likely in Windows' encoding."""
    evidence = b"\n".join(lines)[: 16 * _EVIDENCE]
    if sum(byte > 127 for byte in evidence) < _FEW and _is_in("cp1252", evidence):
        return "cp1252"
    from chardet import detect  # a tenth of a second to load

    encoding = detect(evidence, include_encodings=_CANDIDATES, compat_names=False)["encoding"] or "cp1252"
    if encoding in _EAST_ASIAN and _is_western(evidence):
        return "cp1252"  # two letters such as 'öß' are one Korean character
    if encoding in _OTHER_SCRIPTS and _is_western(evidence) and _stands_alone(evidence):
        return "cp1252"
    if encoding in ("cp1250", "iso8859-2"):
        if _is_western(evidence) and _has_western_words(evidence):
            return "cp1252"
        return max(("cp1250", "iso8859-2"), key=lambda name: _letters(evidence, name))
    return str(encoding)


def _is_western(raw: bytes) -> bool:
    """Return whether bytes are cp1252: ASCII letters, mixed with letters and symbols of western Europe.

    Asian encodings give other characters, and hardly an ASCII letter.

    >>> _is_western("Größe: 5 µm".encode("cp1252")), _is_western("手机".encode("gb18030"))
    (True, False)
    """
    if not _is_in("cp1252", raw):
        return False
    text = raw.decode("cp1252")
    others = [char for char in text if not char.isascii()]
    return _WESTERN.issuperset(others) and sum(char.isascii() and char.isalpha() for char in text) >= len(others)


def _stands_alone(raw: bytes) -> bool:
    """Return whether most characters beyond ASCII stand alone among ASCII, as no letter of another script does.

    >>> _stands_alone("fermé à cause de l'été".encode("cp1252")), _stands_alone("насос".encode("cp1251"))
    (True, False)
    """
    runs = re.findall(rb"[\x80-\xff]+", raw)
    return 2 * sum(len(run) == 1 for run in runs) > len(runs)


def _has_western_words(raw: bytes) -> bool:
    words = re.findall(rb"(?<![\w\x80-\xff])[a-z]+(?![\w\x80-\xff])", raw.lower())
    return sum(word in _WORDS_OF_WEST for word in words) > sum(word in _WORDS_OF_CENTRE for word in words)


def decoded_as(content: bytes, name: str) -> str:
    r"""Return the text of bytes in a named encoding; like browsers, Latin 1 is read as Windows' encoding.

    Raises:
        LookupError: If there is no such encoding.
        UnicodeDecodeError: If the bytes are invalid in the encoding.

    >>> decoded_as(b"it\x92s 5 \x80", "iso-8859-1")
    'it’s 5 €'
    """
    return content.decode(_as_browsers(name, content))


def seen_encoding(content: bytes) -> str:
    """Return the detected encoding of bytes; `BINARY` if they are not text."""
    return named_encoding(AUTO, content[:_BEGINNING], len(content) < _BEGINNING)


def _as_browsers(name: str, raw: bytes, complete: bool = True) -> str:
    """Return Python's name of an encoding, with Windows' encoding for Latin 1, which adds € and “.

    Raises:
        LookupError: If there is no such encoding.
    """
    named = codecs.lookup(name).name
    return "cp1252" if named == "iso8859-1" and _is_in("cp1252", raw, complete) else named


def _letters(raw: bytes, encoding: str) -> float:
    """Return the fraction of the characters beyond ASCII that are letters of one central European language."""
    chars = [char for char in raw.decode(encoding, "replace") if not char.isascii()]
    return max(sum(char in letters for char in chars) for letters in _ALPHABETS) / max(1, len(chars))


def _is_in(encoding: str, raw: bytes, complete: bool = True) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(raw, final=complete)
    except UnicodeDecodeError:
        return False
    return True


def _wide(sample: bytes, complete: bool) -> str:
    """Return the encoding of bytes with zeros among them: UTF-16 or UTF-32 without a mark, or `BINARY`."""
    if sum(32 <= byte < 127 for byte in sample) > 0.65 * len(sample):
        return BINARY  # it would be a text in which every character is an ASCII character and a zero
    likely: list[tuple[int, str]] = []
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        if _is_in(encoding, sample, complete):
            text = sample.decode(encoding, "ignore")
            if text and sum(char.isprintable() or char.isspace() for char in text) > 0.95 * len(text):
                # In the other order of bytes a blank is U+2000, and a letter of Latin is one of China.
                likely.append((sum(char.isascii() or char in "\u3000\u3001\u3002\uff0c" for char in text), encoding))
    return max(likely, default=(0, BINARY))[1]


class LineDecoder:
    """The decoding of lines of UTF-8, among which some may be in an older encoding.

    Args:
        encoding: Encoding of the options; only `AUTO` detects encodings other than UTF-8.
    """

    def __init__(self, encoding: str = AUTO) -> None:
        self._looks = encoding == AUTO
        self._evidence: list[bytes] = []
        self.encoding = ""
        """That of the lines that were not UTF-8."""

    def __call__(self, raw: bytes) -> str:
        """Return the text of a line.

        Raises:
            UnicodeDecodeError: If it is not UTF-8, nor what such a line looks like.
        """
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            if not self._looks:
                raise
        if sum(map(len, self._evidence)) < _EVIDENCE:
            self._evidence.append(raw[:_EVIDENCE])
            self.encoding = legacy_encoding(self._evidence)
        return raw.decode(self.encoding)
