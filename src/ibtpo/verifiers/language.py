"""Which language a text is in: its script, then its commonest words or special letters [OURS].

IFEval's reference asks `langdetect` (random unless seeded, unsure on short texts). The 22 languages of the data set, and their neighbours
that one could take for them, need no statistics: most have a script of their own, the others are told by their function words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_SCRIPTS = {
    "GUJARATI": "gu", "GURMUKHI": "pa", "KANNADA": "kn", "TELUGU": "te", "TAMIL": "ta", "BENGALI": "bn", "MALAYALAM": "ml", "THAI": "th",
    "HANGUL": "ko", "HEBREW": "he", "GREEK": "el", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh",
}  # fmt: skip
_WORDS = {
    "LATIN": {
        "en": "the of and to in is that it was for on are as with his they be at this have from or had by but not what all were we your "
        "you can said there an each she which do how their if will i my a me so who would been our them about has its up out no",
        "de": "der die und das ist ich nicht ein eine zu den von mit sich auf für dem es im sie wir auch als wie war bei aus oder sind des",
        "fr": "le les et des est un une du que qui dans pour pas sur au je il elle nous vous avec ce cette plus sont mais ou par la de en",
        "es": "el los las y es un una que en por con para no se su del al lo como más pero yo muy está son fue la de sus este esta",
        "pt": "o os as e é um uma que em por com para não se do da dos das no na ao mais mas eu muito está são foi seu sua como ele ela",
        "it": "il gli e è un una che di per con non si del della dei nel nella al alla più ma io sono come questo questa anche lo la le",
        "nl": "de het een en van is dat op te in niet met voor zijn er aan ook als maar om bij nog dit die wordt naar ik je we hebben",
        "sv": "och att det är en som på för med av den till inte har ett jag om men var från vi kan ska eller också när så de",
        "fi": "ja on ei se että oli hän mutta ovat kun niin tai myös joka minä sinä olla olen kuin mitä tämä voi sekä sen jos mukaan",
        "sw": "ya na wa kwa ni katika la za cha kuwa hii hiyo kama yake yangu wake lakini sana au ili kwamba huyo hayo watu mimi si pia",
        "vi": "và là của có không một cho được với trong các người này những đã tôi để khi đó từ như bạn nhiều cũng thể lại ra",
        "id": "yang dan di dari untuk dengan ini itu adalah tidak pada ke dalam akan juga saya kami anda atau oleh bisa sebagai karena",
        "tr": "ve bir bu için ile da de çok ama gibi daha olan ne ben sen var yok değil olarak en kadar sonra her ki mi o",
        "pl": "i w na z do się nie to że jest jak o po co dla ale od są przez tak być czy już tylko oraz jego może ten",
    },
    "DEVANAGARI": {
        "hi": "है हैं का की के में और से को पर यह वह नहीं एक था थी थे भी कि हो कर इस मैं हम आप लिए साथ",
        "mr": "आहे आहेत आणि मी तो ती ते हे हा ही च्या या नाही एक होते होता होती मध्ये साठी आपण तुम्ही पण असे असा का काय केले",
        "ne": "छ छन् र मा को ले लाई हो यो त्यो म हामी तपाईं गर्न भएको गर्नुहोस् पनि हुन्छ थियो छैन एक तर यस गर्ने भने के",
    },
}  # fmt: skip
_WORDS = {script: {code: frozenset(words.split()) for code, words in table.items()} for script, table in _WORDS.items()}
_LETTERS = {  # letters that mark a language among those of its script, rarest language first; the last one is what remains
    "ARABIC": {"ur": "ٹڈڑےںھہ", "fa": "پچژگکی", "ar": ""},
    "CYRILLIC": {"uk": "іїєґ", "ru": "ыэё", "bg": ""},
}
LANGUAGES = frozenset(_SCRIPTS.values()) | {code for table in (*_WORDS.values(), *_LETTERS.values()) for code in table}


def detect(text: str) -> str | None:
    """Code (ISO 639-1) of the language most of `text` is in; None if nothing speaks for any."""
    scripts = Counter(_script(letter) for letter in text if letter.isalpha())
    if not scripts:
        return None
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0.2 * scripts["CJK"] > 0:
        return "ja"
    script = scripts.most_common(1)[0][0]
    if script in _WORDS:
        return _by_words(text, _WORDS[script])
    if script in _LETTERS:
        return _by_letters(text, _LETTERS[script], scripts[script])
    return _SCRIPTS.get(script)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _by_words(text: str, table: dict[str, frozenset[str]]) -> str | None:
    words = Counter(re.findall(r"[^\s\d.,;:!?()\[\]\"“”।*]+", text.lower()))
    hits = {code: sum(words[word] for word in known) for code, known in table.items()}
    best = max(hits, key=hits.get)
    return best if hits[best] else None


def _by_letters(text: str, table: dict[str, str], total: int) -> str:
    for code, letters in table.items():
        if sum(text.lower().count(letter) for letter in letters) > 0.01 * total:
            return code
    return list(table)[-1]
