"""Names out of words: of the tasks and groups that items and collections of a source become."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

from fairlane.model.values import is_name

#: Longer names are cut, which leaves room for a mark.
LENGTH_MAX = 100
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+|\.\.+")
#: Letters that have no plainer form in Unicode.
_SPELLED = str.maketrans({"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})


def name_for(*words: object) -> str:
    """A name as near to these words as can be; the same each time.

    Words that lose letters, such as Chinese ones, get a mark: others would become the same name.
    """
    text = "-".join(filter(None, map(str, words)))
    if is_name(text):
        return text
    name = plain(text).removesuffix(".lock")
    lost = any(letter.isalnum() and not letter.isascii() for letter in _decomposed(text))
    return marked(name, text) if lost or len(name) > LENGTH_MAX or not is_name(name) else name


def plain(text: str) -> str:
    """A text with nothing in it that a name cannot have: `Größe 2` is `Grosse-2`."""
    return _UNFIT.sub("-", _decomposed(text)).strip("._-")


def marked(name: str, text: str) -> str:
    """A name with a mark that only this text has."""
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[:LENGTH_MAX].rstrip('._-') or 'item'}-{mark}"


def _decomposed(text: str) -> str:
    """A text whose letters have no accents."""
    letters = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
