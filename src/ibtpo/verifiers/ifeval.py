"""IFEval (Zhou et al. 2023), prompt-level strict: 1 if a response follows every instruction of its prompt.

Written after the rules of the paper and of its reference implementation, all 25 kinds. [OURS]
- An unknown kind, relation or argument is an error; the reference draws a random value where one is missing.
- `letter_frequency` counts the character it is given; the reference draws a random letter in place of "#" and "!".
- `nth_paragraph_first_word` counts paragraphs after empty ones are dropped; the reference counts before.
- Sentences are counted by `sentences.py`, languages are told by `language.py`: the reference needs downloads (punkt, langdetect) for them.
- Every pattern runs in linear time, whatever the response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from ibtpo.verifiers.language import LANGUAGES, detect
from ibtpo.verifiers.sentences import count_sentences
from ibtpo.verifiers.verdict import RIGHT, WRONG, Verdict

_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def judge(gold: dict, text: str) -> Verdict:
    """Scores a response. `gold` has `instruction_id_list` and `kwargs`, one dictionary for each. Raises ValueError for a bad `gold`."""
    followed = follows(gold, text)
    return RIGHT if all(followed) else WRONG


def follows(gold: dict, text: str) -> list[bool]:
    """Which instructions a response follows, in order; an empty response follows none. Raises ValueError for a bad `gold`."""
    instructions = _instructions(gold)
    outcomes = [check(text, **arguments) for check, arguments in instructions]
    return outcomes if text.strip() else [False] * len(outcomes)


def check(gold: dict) -> str:
    """Status of the instructions of a prompt: ok, empty, or parse_failed with the reason."""
    if not gold.get("instruction_id_list"):
        return "empty"
    try:
        follows(gold, "A response.")
    except ValueError as error:
        return f"parse_failed: {error}"
    return "ok"


def _instructions(gold: dict) -> list[tuple[Callable[..., bool], dict]]:
    """Check and arguments of each instruction; arguments that are None (columns of the data set) are left out."""
    names, arguments = gold["instruction_id_list"], gold["kwargs"]
    if len(names) != len(arguments):
        raise ValueError(f"{len(names)} instructions, but {len(arguments)} sets of arguments")
    instructions = []
    for name, given in zip(names, arguments, strict=True):
        given = {key: value for key, value in (given or {}).items() if value is not None}
        if name not in CHECKS:
            raise ValueError(f"unknown instruction {name!r}; known: {', '.join(CHECKS)}")
        check, expected = CHECKS[name]
        if set(given) != set(expected.split()):
            raise ValueError(f"{name} takes the arguments {expected or 'none'!r}, given were {' '.join(sorted(given)) or 'none'!r}")
        instructions.append((check, given))
    return instructions


def _compare(count: int, relation: str, threshold: int) -> bool:
    if relation not in ("less than", "at least"):
        raise ValueError(f"unknown relation {relation!r}; known: less than, at least")
    return count < threshold if relation == "less than" else count >= threshold


def _existence(text: str, keywords: list[str]) -> bool:
    return all(keyword.lower() in text.lower() for keyword in keywords)


def _frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    return _compare(text.lower().count(keyword.strip().lower()), relation, frequency)


def _forbidden(text: str, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in forbidden_words)


def _letter_frequency(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _compare(text.lower().count(letter.lower()), let_relation, let_frequency)


def _language(text: str, language: str) -> bool:
    if language not in LANGUAGES:
        raise ValueError(f"no detector for the language {language!r}; known: {', '.join(sorted(LANGUAGES))}")
    return detect(text) == language


def _sentences(text: str, num_sentences: int, relation: str) -> bool:
    return _compare(count_sentences(text), relation, num_sentences)


def _words(text: str, num_words: int, relation: str) -> bool:
    return _compare(len(re.findall(r"\w+", text)), relation, num_words)


def _paragraphs(text: str, num_paragraphs: int) -> bool:
    """Paragraphs are parted by ***; an empty one is allowed only before the first and after the last divider."""
    parts = [part.strip() for part in text.split("***")]
    inner = parts[1:-1] if len(parts) > 1 else parts
    return all(inner) and sum(map(bool, parts)) == num_paragraphs


def _first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()]
    if len(paragraphs) != num_paragraphs or not 1 <= nth_paragraph <= num_paragraphs:
        return False
    word = paragraphs[nth_paragraph - 1].split()[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word)[0].lower() == first_word.lower()


def _placeholders(text: str, num_placeholders: int) -> bool:
    return len(re.findall(r"\[[^\[\]\n]*\]", text)) >= num_placeholders


def _postscript(text: str, postscript_marker: str) -> bool:
    marker = postscript_marker.strip().lower()
    pattern = {"p.p.s": r"p\.\s?p\.\s?s", "p.s.": r"p\.\s?s\."}.get(marker, re.escape(marker))
    return re.search(pattern, text.lower()) is not None


def _bullets(text: str, num_bullets: int) -> bool:
    lines = [line.strip() for line in text.split("\n")]
    return sum(line.startswith("-") or re.match(r"\*[^*]", line) is not None for line in lines) == num_bullets


def _constrained(text: str) -> bool:
    return any(option in text for option in _OPTIONS)


def _highlights(text: str, num_highlights: int) -> bool:
    """*such* and **such**; a double one also counts as the single ones in it that the reference finds."""
    single = [part for part in re.findall(r"\*([^\n*]*)\*", text) if part.strip()]
    double = [part for part in re.findall(r"\*\*([^\n*]*)\*\*", text) if part.strip()]
    return len(single) + len(double) >= num_highlights


def _sections(text: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections


def _json(text: str) -> bool:
    text = re.sub(r"\A```(?:json|Json|JSON)?|```\Z", "", text.strip())
    try:
        json.loads(text.strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str) -> bool:
    """<<such>>, on one line."""
    for line in text.split("\n"):
        _, opened, rest = line.partition("<<")
        title, closed, _ = rest.rpartition(">>")
        if opened and closed and title.strip("<> "):
            return True
    return False


def _two_responses(text: str) -> bool:
    """Two different responses parted by ******."""
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]


def _repeat(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _end(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _capital(text: str) -> bool:
    return text.isupper() and detect(text) in ("en", None)


def _lowercase(text: str) -> bool:
    return text.islower() and detect(text) in ("en", None)


def _capital_words(text: str, capital_frequency: int, capital_relation: str) -> bool:
    """Words all in capitals; hyphens do not part words, contractions are two (DO + N'T)."""
    words = re.findall(r"[^\s,;:!?()\[\]{}\"“”<>*`]+", text)
    parts = [part for word in words for part in re.split(r"(?i)(?=n't\b|(?<!n)'(?:s|m|d|re|ve|ll)\b)", word)]
    return _compare(sum(part.isupper() for part in parts), capital_relation, capital_frequency)


def _no_comma(text: str) -> bool:
    return "," not in text


def _quotation(text: str) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


CHECKS: dict[str, tuple[Callable[..., bool], str]] = {
    "keywords:existence": (_existence, "keywords"),
    "keywords:frequency": (_frequency, "keyword frequency relation"),
    "keywords:forbidden_words": (_forbidden, "forbidden_words"),
    "keywords:letter_frequency": (_letter_frequency, "letter let_frequency let_relation"),
    "language:response_language": (_language, "language"),
    "length_constraints:number_sentences": (_sentences, "num_sentences relation"),
    "length_constraints:number_paragraphs": (_paragraphs, "num_paragraphs"),
    "length_constraints:number_words": (_words, "num_words relation"),
    "length_constraints:nth_paragraph_first_word": (_first_word, "num_paragraphs nth_paragraph first_word"),
    "detectable_content:number_placeholders": (_placeholders, "num_placeholders"),
    "detectable_content:postscript": (_postscript, "postscript_marker"),
    "detectable_format:number_bullet_lists": (_bullets, "num_bullets"),
    "detectable_format:constrained_response": (_constrained, ""),
    "detectable_format:number_highlighted_sections": (_highlights, "num_highlights"),
    "detectable_format:multiple_sections": (_sections, "section_spliter num_sections"),
    "detectable_format:json_format": (_json, ""),
    "detectable_format:title": (_title, ""),
    "combination:two_responses": (_two_responses, ""),
    "combination:repeat_prompt": (_repeat, "prompt_to_repeat"),
    "startend:end_checker": (_end, "end_phrase"),
    "startend:quotation": (_quotation, ""),
    "change_case:capital_word_frequency": (_capital_words, "capital_frequency capital_relation"),
    "change_case:english_capital": (_capital, ""),
    "change_case:english_lowercase": (_lowercase, ""),
    "punctuation:no_comma": (_no_comma, ""),
}
