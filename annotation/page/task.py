"""The rating page of a queue or a batch: the same in Argilla, for a crowd and in the preview.

`task_of` gives what all items share and `items_of` the items, as JSON that `rate.js` of the server's plugin shows
(docs/rating.md). `hosted_html` puts both into one file, for services that host one and for trials.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from annotation.campaign.rubric import Rubric
from annotation.human.order import OrderDrawing
from annotation.page.training import WORDS, TrainingItem, solution
from annotation.questions.entries import ENGLISH, worded
from annotation.questions.text import LONGEST
from annotation.questions.wordings import ANSWERING_WORDS, CROWD_WORDS, packaged, words_in
from annotation.sampling.queues import Queue
from annotation.server.plugin.plumbline_argilla import rate
from plumbline.errors import StudyError
from plumbline.fields import SECOND, fields_of
from plumbline.languages import display_name, usual_script
from plumbline.records import Pair
from plumbline.study import Study

RIGHT_TO_LEFT = {"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}  # scripts of living languages
COMMENT = "comment"  # the comment's name among an answer's values
_REASONS = ("no_language", "damaged", "another")  # reasons not to judge a pair; the comment explains the last one
_OF_EXAMPLES = ("examples", "right", "why", "open")


def direction(language: str) -> str:
    """`rtl` for a language (code) whose usual script runs from right to left, otherwise `ltr`."""
    return "rtl" if usual_script(language) in RIGHT_TO_LEFT else "ltr"


def rating_words(language: str, *, of_pairs: bool = True) -> dict[str, str]:
    """The words of the page; English where a language has none.

    Where no pairs are judged (`of_pairs`), the page speaks of items.
    """
    content = words_of(language)
    words: dict[str, str] = rate.WORDS
    if "rating" in content:
        words = {**content["rating"], **{name: content["prolific"][name] for name in ("begin", "thank_you")}}
    return words if of_pairs else {**words, **content["items"]["rating"]}


def words_of(language: str) -> dict[str, Any]:
    """Return the page's words in a language, or in English if it is not translated."""
    translated = (CROWD_WORDS / f"{language}.yaml").is_file()
    words: dict[str, Any] = packaged(f"crowd/words/{language if translated else ENGLISH}.yaml")
    return words


def task_of(  # noqa: PLR0913
    study: Study,
    rubric: Rubric,
    queue: Queue,
    name: str,
    *,
    training: Sequence[TrainingItem] = (),
    drawing: OrderDrawing | None = None,
    consent: str = "",
) -> dict[str, Any]:
    """Return the facts shared by all items of a queue or batch: words, texts' titles, questions.

    Args:
        study: gives its name, its contact and whether differences are marked.
        rubric: what is asked.
        queue: whose pool and languages they have.
        name: of the dataset, or the id of the batch.
        training: known pairs, of which those of this queue stand among the instructions as worked examples.
        drawing: where orders are drawn for each rater: questions about one candidate each are explained once.
        consent: what raters agree to before they begin; empty where they have agreed elsewhere.

    Raises:
        StudyError: for an unknown pool, or a scale that neither buttons nor a slider can show.
    """
    language = rubric.language_for(queue.language, queue.output_language)
    pool = rubric.pool(queue.pool)
    titles = rubric.field_titles(queue.pool, language, queue.language, queue.output_language)
    codes = {name: queue.output_language if name in SECOND else queue.language for name in titles}
    words = rating_words(language, of_pairs=not rubric.fields.shown) | {
        name: words_in(WORDS, language)[name] for name in _OF_EXAMPLES
    }
    explained_once = drawing.questions[1:] if drawing else ()
    return {
        "version": 1,
        "study": study.name,
        "queue": name,
        "name": named(rubric, queue, language),
        "language": language,
        "direction": direction(language),
        "words": words,
        "title": worded(pool.title, language),
        "about": about(rubric, language),
        "asked": worded(pool.asked, language),
        "guidelines": rubric.guidelines_for(queue.pool, language, without=explained_once),
        "examples": [_known(item, rubric) for item in training if Queue.of(item.pair) == queue],
        "contact": study.raters.contact,
        "consent": consent,
        "texts": [
            {"name": name, "title": title, "lang": codes[name], "dir": direction(codes[name])}
            for name, title in titles.items()
        ],
        "questions": list(_questions(rubric, queue.pool, language)),
        "together": study.shown_together(queue.pool),
        "comment": {"name": COMMENT, "title": worded(rubric.comment, language), "most": LONGEST},
        "unable": {"title": words["cannot"], "reasons": [words[reason] for reason in _REASONS]},
    }


def named(rubric: Rubric, queue: Queue, language: str) -> str:
    """Return a queue's name for people, in a language: `Formal politeness, German`."""
    names = [display_name(code, language) for code in dict.fromkeys((queue.language, queue.output_language))]
    comma = "، " if direction(language) == "rtl" else ", "
    return f"{worded(rubric.pool(queue.pool).title, language)}{comma}{' – '.join(names)}"


def about(rubric: Rubric, language: str) -> str:
    """Return the words before the line that shows the program's instruction.

    For other subjects, the words before what the item is about.
    """
    return words_in(ANSWERING_WORDS, language)["about"] if rubric.fields.shown else worded(
        rubric.fields.asked, language
    )  # fmt: skip


def items_of(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """Return pairs in the page's form, which hides which of them are controls."""
    return [{"id": pair.pair_id, "texts": [field.value for field in fields_of(pair)]} for pair in pairs]


def known_items(items: Iterable[TrainingItem], rubric: Rubric) -> list[dict[str, Any]]:
    """Return training pairs as the page's items, each with its question and the folded right answer."""
    return [{**items_of([item.pair])[0], **_right(item, rubric)} for item in items]


def _right(item: TrainingItem, rubric: Rubric) -> dict[str, Any]:
    solved = solution(item, rubric)
    line = worded(rubric.pool(item.pair.pool).asked, solved.language)
    return {"asked": line, "right": {"answers": [list(answer) for answer in solved.answers], "why": solved.reason}}


def _known(item: TrainingItem, rubric: Rubric) -> dict[str, Any]:
    pair, solved = item.pair, _right(item, rubric)
    language = rubric.language_for(pair.language, pair.output_language)
    titles = rubric.field_titles(pair.pool, language, pair.language, pair.output_language)
    texts = [
        {"title": titles[field.name], "text": field.text, "lang": field.language, "dir": direction(field.language)}
        for field in fields_of(pair)
    ]
    return {"texts": texts, "right": solved["right"]}


def _questions(rubric: Rubric, pool: str, language: str) -> Iterator[dict[str, Any]]:
    previous: tuple[str, Sequence[str]] = ("", ())
    for entry, question in rubric.asked_questions(pool):
        hint, meanings = rubric.meaning(pool, entry, language)
        try:
            content = question.on_page(meanings, entry.start, previous)
        except StudyError as error:
            raise StudyError(f"rubric {rubric.name}: {error}") from None
        words = {"title": worded(entry.title, language), "hint": hint}
        yield {"name": question.name, "required": question.required, **words, **content}
        previous = question.name, question.labels


def hosted_html(
    task: Mapping[str, Any], items: Sequence[Mapping[str, Any]], submit_to: str, *, drawing: OrderDrawing | None = None
) -> str:
    """The page in one file that needs nothing else, with all its items.

    Args:
        task: as `task_of` gives it.
        items: as `items_of` gives them.
        submit_to: the address that its form posts to, as `annotation.crowd.mturk.form` reads it; empty for a trial, in
            which nothing is stored.
        drawing: what the page draws for each assignment: the order of the items, and of the candidates of each.

    Returns:
        HTML with a policy that lets its own script and style run, and nothing else.
    """
    script, style = _code()
    drawn = None if drawing is None else drawing.of_page(task, items)
    data = {"task": task, "items": items, "drawn": drawn, "submit_to": submit_to, "style": style}
    packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)).decode()
    policy = f"default-src 'none'; {script_policy()}; base-uri 'none'"
    policy += "" if submit_to else "; form-action 'none'"
    return rate.document(
        str(task["name"]),
        str(task["language"]),
        str(task["direction"]),
        str(task["words"]["no_script"]),
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="color-scheme" content="light dark">',
        foot=f'<script type="text/plain" id="data">{packed}</script><script>{script}</script>',
    )


def script_policy() -> str:
    """The part of a policy that lets the page's script run, and no other."""
    name = base64.b64encode(hashlib.sha256(_code()[0].encode()).digest()).decode()
    return f"script-src 'sha256-{name}'"


@functools.cache
def _code() -> tuple[str, str]:
    script = rate.source("rate.js") + files("annotation").joinpath("hosted.js").read_text(encoding="utf-8")
    return _lean(script), _lean(rate.source("rate.css"))


def _lean(source: str) -> str:
    """Return a script or style without indentation, empty lines and comments: services limit a page's length."""
    lines = (line.partition("  // ")[0].strip() for line in source.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))
