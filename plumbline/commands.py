"""The commands of `plumbline`, in the order of the flow: a name each, and the module that does it.

A table of names: nothing of the later stages is imported before one of them is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command: `plumbline NAME` does what `python -m MODULE WORD` does."""

    name: str
    text: str  #: what it does, in a line
    module: str
    word: str = ""  #: its name among the module's own commands
    extra: str = ""  #: what must be installed for it

    @property
    def spelled(self) -> str:
        """It as `python -m` has it."""
        return f"python -m {self.module} {self.word}".strip()


def _annotation(name: str, text: str, word: str = "", extra: str = "annotation") -> Command:
    return Command(name, text, "annotation", word or name, extra)


SECTIONS = {
    "to begin": (
        Command("demo", "the whole flow on the sample study, with simulated raters", "plumbline.demo"),
        Command(
            "studies",
            "put the sample studies into ./studies, to run and to copy from",
            "plumbline.study_files",
            "studies",
        ),
        Command("init", "a study of your own, made of a file of texts", "generation.beginning", extra="generation"),
        Command("schema", "what editors complete study files by: their JSON Schema", "plumbline.study_files", "schema"),
        Command("upgrade", "a study file of an earlier version, rewritten", "plumbline.study_files", "upgrade"),
    ),
    "texts -> transformations": (
        Command("generate", "make the transformations that a study wants", "generation.run", extra="generation"),
        Command("errors", "error rates of the outputs, a generator a row", "generation.errors", extra="generation"),
        Command("compare", "how generators' outputs differ", "generation.compare", extra="generation"),
    ),
    "transformations -> pairs -> people -> verdicts": (
        _annotation("plan", "how many pairs and raters are needed, and what they cost"),
        _annotation("sample", "draw the pairs that people rate"),
        _annotation("preview", "a page that shows what raters will see of each queue"),
        _annotation("serve", "Argilla on this machine, until Ctrl-C"),
        _annotation("users", "annotators' accounts: add, invite, remind, list, reset, remove"),
        _annotation("publish", "put the pairs before the annotators"),
        _annotation("simulate", "rehearse: simulated raters answer"),
        _annotation("crowd", "crowd workers on MTurk or Prolific, in place of annotators", extra="annotation,crowd"),
        Command(
            "judge", "language models rate outputs too, and what that is worth", "annotation.judges", "", "generation"
        ),
        _annotation("collect", "fetch the answers given so far"),
        _annotation("import", "a study of ratings that people gave elsewhere, whatever exported them"),
        _annotation("status", "how far a study is, and what to do next (at any time)"),
        _annotation("review", "signs of careless answers, and decisions about raters"),
        _annotation("withdraw", "pairs that shall not be rated any more nor count, with a reason"),
        _annotation("accept", "agreement and verdicts"),
        _annotation("compare-campaigns", "waves of a campaign, or two campaigns on the same pairs", "compare"),
        _annotation("export", "the ratings as CSV files, or Argilla's, with a codebook"),
        _annotation("ratings-report", "the report on raters, agreement and verdicts", "report", "annotation,report"),
        _annotation(
            "sheet", "HEDS 3.0, ARR's checklist D, a datasheet and Methods, from records", extra="annotation,report"
        ),
        _annotation("backup", "a checked backup of the local Argilla"),
        _annotation("restore", "put a backup in the place of what the stopped Argilla has"),
    ),
    "accepted transformations -> scores": (
        Command("evaluate", "scores and drift of what people accepted", "evaluation.run", extra="evaluation"),
        Command(
            "scores-report",
            "the report on scores and drift: tables and figures",
            "evaluation.report",
            "",
            "evaluation,report",
        ),
        Command(
            "human-report",
            "people and models on the same items: tables and figures",
            "evaluation.human",
            "",
            "evaluation,report",
        ),
    ),
    "benchmarks": (
        Command(
            "select",
            "a smaller benchmark that keeps the ranking of models",
            "evaluation.benchmarks",
            "select",
            "evaluation,report",
        ),
        Command("check", "whether tasks are worth having", "evaluation.benchmarks", "check", "evaluation"),
        Command(
            "shrink", "a smaller data set that ranks models as before", "evaluation.benchmarks", "shrink", "evaluation"
        ),
        Command(
            "board",
            "models ranked on a benchmark, with intervals",
            "evaluation.benchmarks",
            "board",
            "evaluation,report",
        ),
    ),
    "instructions of embedding models": (
        Command(
            "instructions",
            "word instructions, which people then label",
            "generation.instructions",
            extra="generation",
        ),
        Command(
            "sensitivity",
            "models under accepted wordings, and what these do to scores and ranks",
            "evaluation.instructions",
            extra="evaluation,report",
        ),
    ),
    "validated sets": (
        Command(
            "bundle",
            "what people accepted as one file: export it, inspect it, evaluate on it",
            "evaluation.bundle",
            "",
            "evaluation",
        ),
    ),
    "to look at": (Command("dashboard", "all of it in a browser, until Ctrl-C", "streamlit_app", "", "dashboard"),),
}
#: Names of an earlier version: they work until the next release, with a line of advice.
RENAMED = {"campaign-report": "ratings-report", "report": "scores-report"}
COMMANDS = {command.name: command for section in SECTIONS.values() for command in section}
_BY_SPELLING = {command.spelled: f"plumbline {command.name}" for command in COMMANDS.values()}
_BY_SPELLING["python -m annotation"] = "plumbline"
_SPELLING = re.compile(
    "|".join(rf"{re.escape(spelling)}(?![\w.-])" for spelling in sorted(_BY_SPELLING, key=len, reverse=True))
)


def as_called(text: str) -> str:
    """Return a text whose commands (`python -m annotation sample`) have their names (`plumbline sample`)."""
    return _SPELLING.sub(lambda spelling: _BY_SPELLING[spelling[0]], text)
