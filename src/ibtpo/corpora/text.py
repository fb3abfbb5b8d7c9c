"""Text of problems: repair, wrappers, language, and the two forms in which problems are compared.

`key` is for equality (near duplicates): NFKC, case, white space, punctuation and the layout of LaTeX are gone, but nothing that changes
the mathematics is: x-1, n!, 0.5, \\frac{1}{23} and (1,2) stay apart from x+1, n, 05, \\frac{12}{3} and (12). `tokens` is for overlap:
lower-case words and numbers, without any symbol, so that a change of layout or of a delimiter hides no copy. All of it is [OURS].
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_LOST_ESCAPES = {  # "\frac" once read as an escape of a string left a form feed and "rac"; only what cannot be a word after white space
    "\x07": ("a", "lpha|ngle|pprox"),
    "\x08": ("b", "eta|ar|inom|ig|mod|egin|oxed"),
    "\x0b": ("v", "ec|ert"),
    "\x0c": ("f", "rac|orall"),
    "\t": ("t", r"imes|heta|riangle|ext(?=\{)|frac"),
    "\r": ("r", r"ight(?=[)\]|.\\])|ho\b|angle"),
}
_LOST = re.compile("|".join(f"{control}(?={rest})" for control, (_, rest) in _LOST_ESCAPES.items()))
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2060\ufeff\ufffd]")
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_DOUBLED = re.compile(
    r"(?<!\\)\\\\(?=(?:[lc]?dots|cdot|[lg]eq(?:slant)?|odot|d?frac|sqrt|angle|triangle|circ|times|over(?:line|rightarrow))(?![A-Za-z]))"
)

# What a publisher puts around a problem. Each pattern matches a whole wrapper; what it leaves is the problem.
_WRAPPERS = (
    re.compile(
        r"\A\s*Solve the following math problem step by step\. The last line of your response should be of the form Answer: ?\$?Answer"
        r" \(without quotes\) where \$?Answer is the answer to the problem\.\s*",
        re.IGNORECASE,
    ),
    re.compile(r'\s*Remember to put your answer on its own line after "Answer:"\.?\s*\Z', re.IGNORECASE),
    re.compile(r"\s*让我们一步一步地思考。请以“Answer: \\boxed\{<final_answer>\}”的格式输出最终答案。[^\n]*\Z"),
    re.compile(
        r"\s*(?:Let's think|Please reason) step by step,? and (?:output|put) (?:the|your) final answer within \\boxed\{\}\.?\s*\Z", re.I
    ),
    re.compile(r"\A\s*(?:\*\*\s*)?Problem(?: Statement| \d{1,3})[.:]?\s*(?:\*\*)?[.:]?\s+(?=[A-Z$\\])"),  # "**Problem 3.** A number ..."
    re.compile(r"\A\s*[A-Z]?\d{1,2}\.\s+(?=[A-Z$\\])"),  # "12. Let ..."
    re.compile(
        r"\s*\[i\]\s*(?:Proposed|Written|Authored|Submitted) by [^\[\]]*\[/i\]|(?:\n\s*|\s\()proposed by [^\n()]{3,100}\)?", re.IGNORECASE
    ),
)
_CODE_WRAPPERS = (  # of open-r1's coding problems; the line about standard input and output stays, it is part of the problem
    re.compile(r"\A\s*Solve the following coding problem using the programming language python:\s*", re.IGNORECASE),
    re.compile(r"\s*Now solve the problem and return the code\.?\s*\Z", re.IGNORECASE),
)
PICTURE = re.compile(r"!\[[^\]]*\]\(|\[img|<img|\\includegraphics|\.(?:png|jpe?g|gif)\b", re.IGNORECASE)
LINK = re.compile(r"https?://\S", re.IGNORECASE)  # in a mathematical problem: to its figure
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_MATH = re.compile(r"\$\$.*?\$\$|\$.*?\$|\\\(.*?\\\)|\\\[.*?\\\]|\[asy\].*?\[/asy\]|\\begin\{asy\}.*", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    [
        *("a", "all", "an", "and", "are", "as", "at", "be", "by", "can", "each", "every", "find", "for", "from", "given", "has", "have"),
        *("how", "if", "in", "integer", "is", "it", "its", "let", "many", "number", "of", "on", "one", "or", "such", "than", "that"),
        *("the", "then", "there", "this", "to", "two", "value", "what", "when", "where", "which", "with"),
    ]
)


def repair(text: str) -> str:
    """Undoes damage: lost escapes ("\\x0crac" is "\\frac"), doubled backslashes, control characters, ligatures, line ends."""
    text = _LOST.sub(lambda match: "\\" + _LOST_ESCAPES[match[0]][0], text)
    text = _CONTROL.sub("", text.replace("\r\n", "\n"))
    text = _DOUBLED.sub(r"\\", _LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text))
    return unicodedata.normalize("NFC", text).strip()


def strip_wrapper(text: str) -> str:
    """The problem without its publisher's instructions, number and credits; text without any stays as it is."""
    for pattern in _WRAPPERS:
        text = pattern.sub("", text)
    return text.strip()


def strip_code_wrapper(text: str) -> str:
    """The same for programming problems, of which white space and numbers are left alone."""
    for pattern in _CODE_WRAPPERS:
        text = pattern.sub("", text)
    return text


def language(text: str) -> str:
    """ "en", "zh" (any Chinese character: mixed problems cannot be read in English) or "other".

    Other: more than half of the letters outside mathematics are not Latin, or 15 words and more with hardly an English function word.
    """
    if _HAN.search(text):
        return "zh"
    words = _WORD.findall(_COMMAND.sub(" ", _MATH.sub(" ", text)).lower())
    letters = "".join(words)
    foreign = sum(letter > "\u024f" for letter in letters)
    if 2 * foreign > len(letters):
        return "other"
    return "other" if len(words) >= 15 and sum(word in _ENGLISH for word in words) < 0.05 * len(words) else "en"


_LAYOUT = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits|q?quad|[lc]?dots|text(?:bf|it|rm)?|mathrm|mathbf|operatorname|hspace|vspace|begin|end)(?![a-z])"
    r"|\\[,;:! ()\[\]]|\\\\|\$|\*\*|&|~|__+|\.\.+|[\"'`#?;:]|\u2026"
)
_SYNONYMS = ((re.compile(r"\\[dt]f(?:rac)?(?![a-z])|\\df(?![a-z])"), r"\\frac"), (re.compile(r"\\([lg]e)(?:q|qslant)(?![a-z])"), r"\\\1"))
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_STOPS = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|(?<=[a-z][a-z])-(?=[a-z][a-z])|\\(?=[a-z])")
_BRACES = re.compile(r"\{([a-z0-9])\}")
_SPACE = re.compile(r"\s+")
_DASHES = str.maketrans({"\u2013": "-", "\u2014": "-", "\u2212": "-", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


@lru_cache(maxsize=1 << 17)
def key(text: str) -> str:
    """The form in which near duplicates are equal."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_DASHES)
    for pattern, replacement in _SYNONYMS:
        text = pattern.sub(replacement, text)
    text = _SPACE.sub("", _LAYOUT.sub("", _THOUSANDS.sub("", text)))
    return _BRACES.sub(r"\1", _STOPS.sub("", text))


_TOKEN = re.compile(r"[a-z]+|\d+|[\u3400-\u9fff]")
_NO_TOKEN = re.compile(
    r"\[asy\].*?\[/asy\]|\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits|q?quad|text(?:bf|it|rm)?|mathrm|mathbf|operatorname|begin|end|qquad)(?![a-z])",
    re.DOTALL,
)


def tokens(text: str) -> list[str]:
    """Lower-case words and numbers in order; a LaTeX command counts as the word of its name, drawings do not count."""
    text = unicodedata.normalize("NFKC", text).lower()
    for pattern, replacement in _SYNONYMS:
        text = pattern.sub(replacement, text)
    return _TOKEN.findall(_NO_TOKEN.sub(" ", text))


# The request for an integer that DAPO's authors appended to problems with another kind of answer, and its like.
_ANSWER_FORM = re.compile(
    r"[\s.,;]*(?:(?:provide|express|give|write|present|state)\s+(?:your|the)\s+(?:final\s+)?answer\b"
    r"|\bthe\s+(?:original\s+|final\s+|standard\s+form\s+of\s+the\s+)*answer\b[^.?!]{0,80}\b(?:in|of|is|form|format)\b"
    r"|\bplease\s+(?:provide|give|find|calculate|submit|express)\b|output the remainder\b).*\Z",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=1 << 17)
def core(text: str) -> str:
    """The problem without the request for an answer's form at its end ("The answer is in the form m/n. Please give m + n."), [OURS]."""
    match = _ANSWER_FORM.search(text, min(20, len(text) // 4))  # the beginning is never a tail
    return text[: match.start()] if match else text
