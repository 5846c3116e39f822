"""The commands of `plumbline` in the order of the flow, each with the module that runs it.

A table of names: no stage is imported before one of its commands runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command: `plumbline NAME` runs `python -m MODULE WORD`."""

    name: str
    text: str  #: one line about what it does
    module: str
    word: str = ""  #: the module's own name for the command
    extra: str = ""  #: extras that it needs

    @property
    def spelled(self) -> str:
        """The command as `python -m` calls it."""
        return f"python -m {self.module} {self.word}".strip()


def _annotation(name: str, text: str, word: str = "", extra: str = "annotation") -> Command:
    return Command(name, text, "annotation", word or name, extra)


SECTIONS = {
    "getting started": (
        Command("demo", "run the whole flow on the sample study, with simulated raters", "plumbline.demo"),
        Command(
            "studies",
            "copy the sample studies into ./studies, to run or adapt",
            "plumbline.study_files",
            "studies",
        ),
        Command("init", "make a study from your own file of texts", "generation.beginning", extra="generation"),
        Command("schema", "write the JSON Schema of study files, for editors", "plumbline.study_files", "schema"),
    ),
    "texts -> transformations": (
        Command("generate", "transform the study's texts", "generation.run", extra="generation"),
        Command("errors", "show each generator's error rates", "generation.errors", extra="generation"),
        Command("compare", "show how generators' outputs differ", "generation.compare", extra="generation"),
    ),
    "transformations -> pairs -> people -> verdicts": (
        _annotation("plan", "estimate the number of pairs and raters that you need, and their cost"),
        _annotation("sample", "draw the pairs that people rate"),
        _annotation("preview", "write a page that shows each queue as raters will see it"),
        _annotation("serve", "run Argilla on this machine, until Ctrl-C"),
        _annotation("users", "manage annotators' accounts: add, invite, remind, list, reset, remove"),
        _annotation("publish", "send the pairs to Argilla, where annotators rate them"),
        _annotation("simulate", "rehearse: simulated raters answer"),
        _annotation("crowd", "recruit crowd workers: Prolific, links, a rehearsal", extra="annotation,crowd"),
        Command(
            "judge",
            "let language models rate too, and measure how useful their ratings are",
            "annotation.judges",
            "",
            "generation",
        ),
        _annotation("collect", "fetch the answers given so far"),
        _annotation("import", "make a study from ratings made in another tool"),
        _annotation("status", "show a study's progress and the next step (at any time)"),
        _annotation("review", "show signs of careless answers; exclude raters"),
        _annotation("withdraw", "exclude pairs from rating and from results, with a reason"),
        _annotation("accept", "compute agreement and verdicts"),
        _annotation("compare-campaigns", "compare waves of a campaign, or two campaigns on the same pairs", "compare"),
        _annotation("export", "write the ratings as CSV or Argilla's files, with a codebook"),
        _annotation(
            "ratings-report", "write the report on raters, agreement and verdicts", "report", "annotation,report"
        ),
        _annotation(
            "sheet", "write HEDS 3.0, ARR's checklist D, a datasheet and a methods section", extra="annotation,report"
        ),
        _annotation("backup", "write and check a backup of the local Argilla"),
        _annotation("restore", "replace the stopped Argilla's data with a backup"),
    ),
    "accepted transformations -> scores": (
        Command("evaluate", "score models and measure drift on accepted texts", "evaluation.run", extra="evaluation"),
        Command(
            "scores-report",
            "write the report on scores and drift: tables and figures",
            "evaluation.report",
            "",
            "evaluation,report",
        ),
        Command(
            "human-report",
            "write the report on people and models on the same items",
            "evaluation.human",
            "",
            "evaluation,report",
        ),
    ),
    "benchmarks": (
        Command(
            "select",
            "choose a smaller benchmark that keeps the ranking of models",
            "evaluation.benchmarks",
            "select",
            "evaluation,report",
        ),
        Command("check", "check the data and the scores of tasks", "evaluation.benchmarks", "check", "evaluation"),
        Command(
            "shrink",
            "make a smaller data set that keeps the ranking of models",
            "evaluation.benchmarks",
            "shrink",
            "evaluation",
        ),
        Command(
            "board",
            "rank models on a benchmark, with intervals",
            "evaluation.benchmarks",
            "board",
            "evaluation,report",
        ),
    ),
    "instructions of embedding models": (
        Command(
            "instructions",
            "make wordings of instructions for people to label",
            "generation.instructions",
            extra="generation",
        ),
        Command(
            "sensitivity",
            "measure how accepted wordings change scores and ranks",
            "evaluation.instructions",
            extra="evaluation,report",
        ),
    ),
    "validated sets": (
        Command(
            "bundle",
            "export the accepted texts as one file, inspect it, evaluate on it",
            "evaluation.bundle",
            "",
            "evaluation",
        ),
    ),
    "in the browser": (
        Command("dashboard", "show the study in a browser, until Ctrl-C", "streamlit_app", "", "dashboard"),
    ),
}
COMMANDS = {command.name: command for section in SECTIONS.values() for command in section}
_BY_SPELLING = {command.spelled: f"plumbline {command.name}" for command in COMMANDS.values()}
_BY_SPELLING["python -m annotation"] = "plumbline"
_SPELLING = re.compile(
    "|".join(rf"{re.escape(spelling)}(?![\w.-])" for spelling in sorted(_BY_SPELLING, key=len, reverse=True))
)


def as_named(text: str) -> str:
    """Return a text whose commands (`python -m annotation sample`) have their names (`plumbline sample`)."""
    return _SPELLING.sub(lambda spelling: _BY_SPELLING[spelling[0]], text)
