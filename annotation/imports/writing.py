"""Writing an import as a study: its file, with texts, outputs and rubric beside it, and its records."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from annotation.campaign.offering import alone
from annotation.campaign.records import ITEM_IDS, PAIRS, SUPPLY, TRUTH, CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.campaign.subjects import read_items
from annotation.imports.answers import ImportedQuestion, affirmative, distinct, slug
from annotation.imports.matching import Material
from annotation.imports.preferences import asks_for_worst, direction, sides
from annotation.imports.times import coarse
from annotation.questions.entries import ASKED_UNKNOWN, IMPORTED, TOLD_UNKNOWN
from annotation.questions.label import SingleLabelQuestion
from annotation.ratings.answers import PAUSE, refuse_mixing, write_ratings
from annotation.records import Supply
from annotation.sampling.sample import sample_settings
from generation.jobs import Plan
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import csv_bytes
from plumbline.hashes import packed, set_hash
from plumbline.manifest import Manifest, stage
from plumbline.reading import read_yaml
from plumbline.records import Pair, Rating, Text, is_whole, pair_id, text_id
from plumbline.scales import Continuous, is_fine
from plumbline.store import atomic
from plumbline.study import Study, load_study
from plumbline.study.campaign import RuleSpec
from plumbline.study.subject import VerdictUnit
from plumbline.words import count, printable_line, readable, shows

RUBRIC = "questions"
SEED = 1337
GROUP = "imported"
_ENOUGH = 0.5  # share of the answer sets from which a question counts as asked of everybody
_LEAST_PAIRS = 20  # HTEB's study has 100; `AcceptanceSpec.min_pairs`
_LETTERS = "abcdefgh"  # of the sides of a row, as labels
QUEUE = "systems"
_UNIT = (
    QUEUE,
    "original",
    "model",
    "axis",
    "transformation",
    "texts",
    "total",
    "overall",
    "reason",
    "name",
    "accepted",
)


@dataclass(frozen=True)
class Layout:
    """The files of an import, and the names of its systems."""

    file: Path
    name: str
    is_pairs: bool
    units: Sequence[str]  #: the transformation or group of each item
    titles: Mapping[str, str]  #: the name of each unit in the file

    @property
    def folder(self) -> Path:
        """The folder beside the study."""
        return self.file.with_suffix("")


def lay_out(file: Path, material: Material) -> Layout:
    """Decide each item's unit, which is its system.

    Several outputs of a system for one original are texts with the original beside: no column tells them apart.
    """
    items = material.items
    is_pairs = (
        has_pairs(material) and not compared_columns(material) and not items.duplicated(["system", "original"]).any()
    )
    systems = items["system"].astype(object).where(items["system"].notna(), "outputs" if is_pairs else "items")
    names = list(dict.fromkeys(systems))
    slugs = [slug(str(name), "system", letter=True) for name in names]
    reserved = [name in _UNIT or name.endswith(("_original", "_difference", "_reason")) for name in slugs]
    slugs = distinct([f"system-{s}"[:64] if marked else s for s, marked in zip(slugs, reserved, strict=True)])
    named = dict(zip(names, slugs, strict=True))
    titles = {unit: readable(str(name))[:100] for name, unit in named.items()}
    numbers = Counter(titles.values())
    titles = {unit: title if numbers[title] == 1 and shows(title) else unit for unit, title in titles.items()}
    return Layout(file, slug(file.stem, "study"), is_pairs, list(systems.map(named)), titles)


def has_pairs(material: Material) -> bool:
    """Return whether the files hold originals and outputs."""
    return bool(material.items["original"].notna().any() and material.items["output"].notna().any())


def interpretation(layout: Layout, material: Material, questions: Sequence[ImportedQuestion]) -> Iterator[str]:
    """Yield lines on the questions and on what the answers are about."""
    for question in questions:
        yield f"question {question.name}: {question.kind.replace('_', ' ')}, {question.scale}"
    yield from material.notes
    if compared_columns(material):
        systems = systems_of_labels(questions, material)
        behind = ", ".join(f"{label} is {column.partition(':')[2]}" for label, column in systems.items())
        unclear = "no answer says which output is preferred, so systems are not compared; write A, B and tie"
        yield f"systems: {behind or unclear}"
        if systems:
            yield ("what is decided: which system is preferred, in the tables of systems; verdicts are on the texts, by"
                   " the study's acceptance.rules, and name no system")  # fmt: skip
    elif has_pairs(material) and not layout.is_pairs:
        yield ("a system has several outputs of an original, so each output is a text with its original beside it; if a"
               " column tells these outputs apart, name it with --column system=NAME")  # fmt: skip


def write_study_files(
    layout: Layout,
    material: Material,
    questions: Sequence[ImportedQuestion],
    language: str,
    exports: str | None,
    *,
    anew: bool = False,
) -> Study:
    """Write the study, its rubric, texts and outputs; returns the study as every command reads it.

    An existing study keeps its rules and models, unless `anew`. Raises StudyError if these files make a different
    study.
    """
    content = _study(layout, material, questions, language)
    stays = layout.file.exists() and not anew
    if stays:
        _refuse_another(layout.file, content)
    items = material.items.assign(unit=layout.units)
    head = "The questions that raters answered, as far as the imported files show them."
    _write_yaml(layout.folder / f"{RUBRIC}.yaml", _rubric(layout, material, questions), head)
    if layout.is_pairs:
        texts = items.drop_duplicates("original")
        columns = {"text": texts["original"].astype(str), "language": texts["language"].astype(object).fillna(language)}
        _write_parquet(layout.folder / "texts.parquet", pd.DataFrame(columns))
        for unit in layout.titles:
            of_unit = items[items["unit"] == unit]
            outputs = {"text": of_unit["original"].astype(str), "output": of_unit["output"].astype(str)}
            _write_parquet(layout.folder / "outputs" / f"{unit}.parquet", pd.DataFrame(outputs))
    else:
        shown_and_compared = [*beside_names(material), *compared_columns(material)]
        _write_parquet(layout.folder / "texts.parquet", _text_rows(items, language, shown_and_compared))
    if not stays:
        names = printable_line(", ".join(sorted(set(material.answers["file"].astype(str)))))
        head = (f"Written from {names} by `plumbline import`.\n"
                "# Its rules were fixed after the ratings, and its verdicts say so.")  # fmt: skip
        _write_yaml(layout.file, content, head)
    return load_study(layout.file, exports)


def _refuse_another(file: Path, content: Mapping[str, Any]) -> None:
    """Raise StudyError if the existing study has other texts, systems or questions than the imported files."""
    written = read_yaml(file)
    for key in ("name", "subject", "datasets", "transformations", "seeds", "sample", "rubric"):
        if written.get(key) != content.get(key):
            raise StudyError(
                f"{file} exists already, and these files make a study with another `{key}`; choose another name, or"
                " replace it with --replace"
            )


def _write_yaml(path: Path, content: Mapping[str, Any], head: str) -> None:
    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=118)
    with atomic(path, public=True) as file:
        file.write(f"# {head}\n{text}".encode())


def _write_parquet(path: Path, frame: pd.DataFrame) -> None:
    with atomic(path, public=True) as file:
        frame.to_parquet(file, index=False)


def beside_names(material: Material) -> dict[str, str]:
    """Return the names of the fields beside a text, by the items' column."""
    items = material.items
    columns = [name for name in items.columns if name.startswith("beside:")]
    compared = compared_columns(material)
    first = [name for name in ("output", "text", "original") if items[name].notna().any()]
    columns += first[:-1] if compared else [name for name in first if name == "original"]
    texts = [name for name in ("text", "output") if items[name].notna().any()]
    if texts and not compared and items.duplicated([*columns, *texts[:1], "system"]).any():
        columns.append("item")  # the same texts under two ids are two items
    names = distinct([slug(name.removeprefix("beside:"), "beside", letter=True) for name in columns])
    return {column: f"{name}-beside" if name == "text" else name for column, name in zip(columns, names, strict=True)}


def systems_of_labels(questions: Sequence[ImportedQuestion], material: Material) -> dict[str, str]:
    """Return the column of the system behind each label; none where labels or columns do not say which it is."""
    columns = compared_columns(material)
    by_question = [sides(question, len(columns)) for question in questions]
    labels = {(label, side) for question_sides in by_question for label, side in question_sides.items()}
    if labels and all(label == _LETTERS[side] for label, side in labels):  # one may never have been chosen
        labels = set(zip(_LETTERS, range(len(columns)), strict=False))
    one_each = len(labels) == len(dict(labels))
    return {label: columns[side] for label, side in sorted(labels)} if one_each else {}


def compared_columns(material: Material) -> list[str]:
    """Return the items' columns of systems between whose outputs an answer chooses."""
    return [name for name in material.items.columns if name.startswith("compared:")]


def _text_rows(items: pd.DataFrame, language: str, context: Sequence[str]) -> pd.DataFrame:
    """Return items as rows of a file of texts: compared outputs show their original, items without a text their id."""
    compared = [column for column in context if column.startswith("compared:")]
    names = ("original", "text", "output") if compared else ("text", "output")
    text = next((items[name] for name in names if items[name].notna().any()), items["item"])
    columns = {"text": text.astype(str), "group": items["unit"].astype(str)}
    columns["language"] = items["language"].astype(object).fillna(language)
    columns |= {column: items[column].astype(object).fillna("-") for column in context}
    return pd.DataFrame(columns)


def _rubric(layout: Layout, material: Material, questions: Sequence[ImportedQuestion]) -> dict[str, Any]:
    shared = _shared_scale(questions)
    fields: Any = {"original": {"en": "Original"}, "transformed": {"en": "Output"}}
    if not layout.is_pairs:
        context = [
            {"name": name, "title": {"en": column.removeprefix("beside:")}}
            for column, name in beside_names(material).items()
        ]
        fields = [{"name": "text", "title": {"en": "Text"}}, *context]
    asked_about = "an output beside its original" if layout.is_pairs else "a text"
    pools = {} if layout.is_pairs else {"texts": {"title": {"en": "Texts"}, "asked": {"en": ASKED_UNKNOWN}}}
    systems = systems_of_labels(questions, material)
    choices = [question for question in questions if not systems.keys().isdisjoint(question.labels)]
    words = {label: text for choice in choices for label, text in choice.labels.items()}
    of_systems = {label: words.get(label, label.upper()) for label in systems}  # some may never have been the answer
    of_choices = {
        choice.name: {
            "labels": {label: {"en": text} for label, text in {**of_systems, **choice.labels}.items()},
            **direction(choice, choices),
        }
        for choice in choices
    }
    return {
        "name": RUBRIC,
        "source": IMPORTED,
        **({"scale": _written(shared)} if shared else {}),
        "fields": fields,
        "comment": {"en": "Comment"},
        "questions": [
            _question(question, material, bool(shared)) | of_choices.get(question.name, {}) for question in questions
        ],
        "guidelines": {"en": f"Raters saw {asked_about}. {TOLD_UNKNOWN}"},
        "pools": pools,
    }


def _shared_scale(questions: Sequence[ImportedQuestion]) -> tuple[float, ...]:
    """Return the scale that all ratings share; empty if they have several scales, or there are no ratings."""
    scales = {question.points for question in questions if question.points}
    return next(iter(scales)) if len(scales) == 1 else ()


def _question(question: ImportedQuestion, material: Material, shared: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": question.name, "title": {"en": readable(question.title)}}
    if question.points:
        ends = (question.points[0], question.points[-1])
        worded = question.points if set(question.words) - set(ends) and not is_fine(question.points) else ends
        entry["points"] = {point: {"en": question.words.get(point, f"{point:g}")} for point in worded}
        entry |= {} if shared else {"scale": _written(question.points)}
        entry |= {"lower_is_better": True} if question.title in material.lower else {}
    else:
        entry["kind"] = question.kind
        entry |= {"labels": {name: {"en": words} for name, words in question.labels.items()}} if question.labels else {}
    if not question.asked.free_text and not everybody_asked(question, material):
        entry["required"] = False
    return entry


def _written(points: tuple[float, ...]) -> Any:
    """Return a scale as in a rubric's file: its points, or for many points the ends and the step."""
    if not is_fine(points):
        return list(points)
    step = {} if isinstance(points, Continuous) else {"step": points[1] - points[0]}
    return {"from": points[0], "to": points[-1], **step}


def everybody_asked(question: ImportedQuestion, material: Material) -> bool:
    """Return whether a question was asked in most of the times that a rater answered about an item."""
    counts = material.answers["question"].value_counts()
    only_question = int((counts > 0).sum()) == 1
    return only_question or int(counts[question.title]) >= _ENOUGH * int(_raters_of_items(material).sum())


def _study(layout: Layout, material: Material, questions: Sequence[ImportedQuestion], language: str) -> dict[str, Any]:
    items, folder = material.items, layout.folder.name
    raters = _raters_of_items(material)
    largest = max(Counter(layout.units).values())
    content: dict[str, Any] = {"name": layout.name, "description": "Imported ratings of people"}
    if layout.is_pairs:
        content["datasets"] = [
            {"name": layout.name, "task": "bitext_mining", "path": f"{folder}/texts.parquet", "language": language,
             "columns": {"sentence1": "text", "sentence2": "text"}, "split": "all"}
        ]  # fmt: skip
        compared = {"queue": QUEUE} if items.duplicated("original").any() else {}
        content["transformations"] = [
            {
                "name": unit,
                "axis": GROUP,
                **compared,
                "outputs": {"path": f"{folder}/outputs/{unit}.parquet"},
                "title": title,
                "raters": {
                    "title": {"en": "Outputs" if compared else title},  # systems of a queue have the same words
                    "asked": {"en": ASKED_UNKNOWN},
                },
            }
            for unit, title in layout.titles.items()
        ]
        content["seeds"] = [SEED]
    else:
        context = {name: column for column, name in beside_names(material).items()}
        content["subject"] = {
            "kind": "texts", "path": f"{folder}/texts.parquet", "language": language,
            "groups": list(layout.titles), **({"context": context} if context else {}),
            **({"systems": systems} if (systems := systems_of_labels(questions, material)) else {}),
        }  # fmt: skip
    content["sample"] = {"pairs": largest, "seed": SEED, "controls": 0, "repeats": 0}
    content["rubric"] = RUBRIC
    content["raters"] = {"per_pair": min(1000, int(raters.max(initial=1)))}
    # Where chance decides which output stands first, few raters see the same two in the same order.
    has_two = not compared_columns(material) and (raters >= 2).sum() * 2 >= len(items)
    content["acceptance"] = {
        **_rules(questions, material),
        "min_pairs": min(_LEAST_PAIRS, largest),
        "min_raters": 2 if has_two else 1,
    }
    return content


def _raters_of_items(material: Material) -> np.ndarray:
    """Return how many people answered about each item."""
    raters = material.answers["rater"].array
    size = len(raters.categories) + 1
    together = pd.unique(material.answers["item"].to_numpy(np.int64) * size + raters.codes)
    return np.bincount(together // size, minlength=len(material.items))


def _rules(questions: Sequence[ImportedQuestion], material: Material) -> dict[str, Any]:
    """Return the acceptance rules.

    For ratings HTEB's threshold (3 on 1 to 5), or the middle of another scale; for labels half of the answers for a
    label that means yes; for choices between systems at most half of the answers for none of them.
    """
    common = [question for question in questions if everybody_asked(question, material)]
    ratings = [question for question in common if question.points]
    in_order = sorted(common, key=lambda question: question.is_preference)
    systems = systems_of_labels(questions, material)
    shares = {question.name: rule for question in in_order if (rule := _share_rule(question, systems))}
    yes = [shares[question.name] for question in common if question.name in shares and affirmative(question)]
    shared = _shared_scale(questions)
    every_rating = len(ratings) == sum(bool(question.points) for question in questions)
    if shared and not material.lower and every_rating and not yes:
        return {"threshold": (shared[0] + shared[-1]) / 2}
    ends = {question.name: "at_most" if question.title in material.lower else "at_least" for question in ratings}
    rules = [
        {"question": question.name, ends[question.name]: (question.points[0] + question.points[-1]) / 2}
        for question in ratings
    ] + (yes or ([] if ratings else list(shares.values())[:1]))
    if not rules:
        raise _no_rules(questions)
    return {"rules": rules}


def _no_rules(questions: Sequence[ImportedQuestion]) -> DataError:
    words = next((question.name for question in questions if question.kind == "text"), "")
    return DataError(
        "no question with a scale or labels was answered for most items, so no verdict is possible; name other"
        " columns with --column answer=NAME"
        f"{f', or add --scale {words}=labels if its answers are labels' if words else ''}"
    )


def _share_rule(question: ImportedQuestion, systems: Collection[str]) -> dict[str, Any]:
    """Return the rule on the share of a label; none for a question whose labels have no shares to judge."""
    ties = [label for label in question.labels if label not in systems]
    tie = ties[0] if ties and len(ties) < len(question.labels) else ""
    label, yes = next(iter(question.labels), ""), affirmative(question)
    end = "at_most" if tie or (not yes and asks_for_worst(question.title)) else "at_least"
    rule = {"question": question.name, "label": yes or tie or label, end: 0.5}
    spec = RuleSpec.model_validate(rule)
    fits = question.labels and not question.asked.rule_fault(spec, by_blocks=False, with_agreement=False)
    return rule if fits else {}


def write_records(
    study: Study,
    layout: Layout,
    material: Material,
    questions: Sequence[ImportedQuestion],
    pseudonyms: Mapping[str, str],
) -> int:
    """Write the sample and the ratings; return the number of ratings."""
    data = study.data_files()
    with alone(study):
        with stage(study, "sample", data, [study.folder / PAIRS.name], sample_settings(study.sample, study.judging)):
            pairs = _pairs(study, layout, material) if layout.is_pairs else _texts(study)
            Manifest.of(study).write_models(SUPPLY.name, _supplies(pairs, study))
            for name, table in (("controls.parquet", []), (PAIRS.name, pairs)):
                Manifest.of(study).write_table(name, table, Pair)
        files = [study.folder / PAIRS.name, study.folder / "controls.parquet"]
        with stage(
            study, "collect", files, [study.folder / "ratings.parquet", study.folder / "control_ratings.parquet"]
        ):
            ratings = _ratings(pairs, material, questions, pseudonyms)
            refuse_mixing(study, ratings)
            write_ratings(CampaignRecords(study), ratings)
            if material.items["truth"].notna().any():
                with atomic(study.folder / TRUTH) as file:
                    file.write(csv_bytes(_right_answers(pairs, material, questions)))
            (layout.folder / ITEM_IDS).unlink(missing_ok=True)  # of an import that this one replaces
            if (ids := np.asarray(_without_names(material.items["item"], pseudonyms))).any():
                with atomic(layout.folder / ITEM_IDS) as file:
                    pd.DataFrame({"pair_id": pairs["pair_id"].to_numpy(), "item_id": ids}).to_parquet(file, index=False)
    return len(ratings)


def _right_answers(pairs: pd.DataFrame, material: Material, questions: Sequence[ImportedQuestion]) -> pd.DataFrame:
    """Return right answers by pair: as labels if only one question has labels, otherwise as in the file."""
    truth = material.items["truth"].astype(object)
    labels = [question for question in questions if isinstance(question.asked, SingleLabelQuestion)]
    name, values = (labels[0].name, labels[0].values) if len(labels) == 1 else ("", {})
    answers = truth.map(lambda cell: values.get(str(cell).strip(), cell), na_action="ignore")
    return pd.DataFrame({"pair_id": pairs["pair_id"].to_numpy(), "question": name, "truth": answers}).dropna()


def _supplies(pairs: pd.DataFrame, study: Study) -> list[Supply]:
    supplies = []
    for (name, language), part in pairs.groupby(["transformation", "language"], observed=True, sort=False):
        outputs = {data.name: {SEED: set_hash(packed(list(part["pair_id"]), ""))} for data in study.datasets[:1]}
        counts = {"ok": len(part), "failed": 0, "unanswered": 0}
        supplies.append(Supply(transformation=str(name), language=str(language), **counts, outputs=outputs))
    return supplies


def _texts(study: Study) -> pd.DataFrame:
    """Return the items that are no pairs as rows of `Pair`; no row is kept as such, so that many take little memory."""
    pairs = (item.pair(study.kinds[item.group]) for item in read_items(study, load_rubric(study))[0])
    cells = operator.attrgetter(*Pair.model_fields)
    return pd.DataFrame.from_records(map(cells, pairs), columns=list(Pair.model_fields))


def _pairs(study: Study, layout: Layout, material: Material) -> pd.DataFrame:
    """Return the items as pairs, with the ids that outputs of these files have in every stage."""
    plan, spec = Plan(study), study.datasets[0]
    items = material.items
    originals, outputs = items["original"].astype(str), items["output"].astype(str)
    languages = items["language"].astype(object).fillna(str(getattr(spec, "language", ""))).astype(str)
    rows = []
    for unit, original, output, language in zip(layout.units, originals, outputs, languages, strict=True):
        text = Text.model_construct(
            dataset=spec.name, task_type="bitext_mining", split="test", item="", field="sentence1", language=language,
            text_id=text_id(original, language), text=original,
        )  # fmt: skip
        job = plan.job(text, unit, SEED)
        rows.append((pair_id(job.key, output), job.key, unit, original, output, language, job.languages[-1]))
    columns = ["pair_id", "key", "transformation", "original", "transformed", "language", "output_language"]
    frame = pd.DataFrame(rows, columns=columns)
    kinds: Mapping[str, VerdictUnit] = study.kinds
    of_unit = {
        "axis": {name: kind.axis for name, kind in kinds.items()},
        "pool": {name: kind.pool for name, kind in kinds.items()},
        "model": {name: maker.model for name, maker in plan.makers.items()},
        "generator_hash": {name: maker.hash for name, maker in plan.makers.items()},
        "queue": {name: kind.queue for name, kind in kinds.items()},
        "generator_kind": {name: maker.kind for name, maker in plan.makers.items()},
    }
    frame = frame.assign(**{name: frame["transformation"].map(values) for name, values in of_unit.items()})
    return frame.assign(
        dataset=spec.name, task_type="bitext_mining", seed=SEED, control="", repeats="", prompt_hash="", wave=1,
        fields="", expected="", systems="",
    )[list(Pair.model_fields)]  # fmt: skip


def _ratings(
    pairs: pd.DataFrame, material: Material, questions: Sequence[ImportedQuestion], pseudonyms: Mapping[str, str]
) -> pd.DataFrame:
    """Return the answers as rows of `Rating`."""
    if len(pairs) != len(material.items):
        more = len(material.items) - len(pairs)
        raise DataError(
            f"{count(more, 'item has', 'items have')} the same texts as another of the group; name the columns that"
            " tell them apart: --column beside=NAME"
        )
    by_title = {question.title: question for question in questions}
    answers = _sorted(material.answers, pairs, by_title, pseudonyms)
    values = np.full(len(answers), np.nan)
    words = np.full(len(answers), "", object)
    for title, rows in answers.groupby("question", observed=True).indices.items():
        question, cells = by_title[str(title)], answers["cell"].array[rows]
        forms = [question.values.get(str(text)) for text in cells.categories]
        if question.points:
            values[rows] = np.array([np.nan if form is None else form for form in forms] + [np.nan], float)[cells.codes]
        else:
            words[rows] = np.array(["" if form is None else form for form in forms] + [""], object)[cells.codes]
    item = answers["item"].to_numpy()
    kinds = ["simulated-" in name for name in pseudonyms.values()]
    at, coarse_times = answers["at"], coarse(answers["at"])
    frame = pd.DataFrame(
        {
            **{name: pairs[name].astype("category").array[item] for name in ("pair_id", "transformation", "language")},
            "rater_id": _each(answers["rater"], pseudonyms.__getitem__),
            "question": _each(answers["question"], lambda title: by_title[title].name),
            "value": pd.array(values, "Int64" if is_whole(pd.Series(values)) else "Float64"),
            "answer": words,
            "status": _each(answers["status"]),
            "submitted_at": at.fillna(datetime.now(UTC)).dt.as_unit("us"),
            "source": _each(answers["file"]),
            "batch": "",
            "comment": _without_names(answers["comment"], pseudonyms),
            "order": "",
            "turn": 0,
            "simulated": any(kinds) and np.array(kinds)[answers["rater"].array.codes],
        }
    )
    frame["seconds"] = _seconds(answers, coarse_times)
    columns = list(Rating.model_fields)  # those of marks stay empty until the ratings are written
    return frame.reindex(columns=columns)


def _sorted(
    answers: pd.DataFrame, pairs: pd.DataFrame, by_title: Mapping[str, ImportedQuestion], pseudonyms: Mapping[str, str]
) -> pd.DataFrame:
    """Return the answers in the order of `Rating.KEY`: by pair, rater and question."""
    of_pairs = pairs["pair_id"].rank().to_numpy()[answers["item"].to_numpy()]
    of_raters = _each(answers["rater"], pseudonyms.__getitem__).codes
    of_questions = _each(answers["question"], lambda title: by_title[title].name).codes
    return answers.iloc[np.lexsort((of_questions, of_raters, of_pairs))].reset_index(drop=True)


def _each(column: pd.Series, read: Callable[[str], str] = str) -> pd.Categorical[str]:
    """Return a column of categories as what is read from each of its texts, in order; a missing text is empty."""
    column = column.cat.remove_unused_categories()
    words, codes = np.unique(np.array([*map(read, column.cat.categories), ""], object), return_inverse=True)
    return pd.Categorical.from_codes(codes[column.cat.codes], pd.Index(words))


def _without_names(texts: pd.Series, pseudonyms: Mapping[str, str]) -> pd.Categorical[str]:
    """Return comments, or items' ids, with pseudonyms in place of raters' ids of four letters or more."""
    ids = {name.casefold(): alias for name, alias in pseudonyms.items() if len(name) > 3 and not name.isdigit()}
    return _each(texts, lambda text: _WORD.sub(lambda word: ids.get(word[0].casefold(), word[0]), readable(text)))


_WORD = re.compile(r"\w[\w@.+-]*\w")  # addresses and ids with dots or hyphens too


def _seconds(answers: pd.DataFrame, coarse_times: bool) -> np.ndarray:
    """Return each answer's seconds: the file's, or the time since the rater's previous answer; unknown ones are NaN."""
    seconds = answers["seconds"].to_numpy(float)
    if not np.isnan(seconds).all() or coarse_times or answers["at"].isna().all():
        return seconds
    turns = answers[["rater", "item", "at"]].dropna().drop_duplicates(["rater", "item"])
    turns = turns.sort_values(["rater", "at"])
    since = turns.groupby("rater", observed=True)["at"].diff().dt.total_seconds()
    tied = turns.duplicated(["rater", "at"], keep=False)
    known_since = since.where((since > 0) & (since <= PAUSE.total_seconds()) & ~tied)
    both = answers[["rater", "item"]].merge(turns.assign(since=known_since)[["rater", "item", "since"]], how="left")
    return both["since"].to_numpy(float)
