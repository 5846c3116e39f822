"""The commands of `plumbline` in the order of the flow, each with the function that runs it and its options.

A table of names: no stage is imported before one of its commands runs.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass

from plumbline import cli


@dataclass(frozen=True)
class Command:
    """A command of `plumbline`."""

    name: str
    text: str  #: one line about what it does
    options: str  #: `module:function` that adds its options to a parser
    run: str = ""  #: `module:function` that runs it; empty if its options name the function
    extra: str = ""  #: extras that it needs

    def parser(self) -> cli.Parser:
        """Return the parser of its words; `run` of what it returns is the function to call."""
        parser = cli.Parser(
            prog=f"plumbline {self.name}",
            description=f"{self.text[0].upper()}{self.text[1:]}.",
            epilog=f"example: plumbline {self.name} --study studies/demo.yaml",
        )
        if self.run:
            parser.set_defaults(run=cli.handler(self.run))
        pkgutil.resolve_name(self.options)(parser)
        return parser


def _annotation(name: str, text: str, run: str, options: str = "", extra: str = "annotation") -> Command:
    return Command(
        name, text, f"annotation.options:{options or name.replace('-', '_')}", run and f"annotation.{run}", extra
    )


SECTIONS = {
    "getting started": (
        Command("demo", "run the whole flow on the sample study, with simulated raters", "plumbline.demo:add_options",
                "plumbline.demo:run"),
        Command("studies", "copy the sample studies into ./studies, to run or adapt",
                "plumbline.study_files:studies", "plumbline.study_files:copy_studies"),
        Command("init", "make a study from your own file of texts", "generation.options:init",
                "generation.study_of_file:run", "generation"),
        Command("schema", "write the JSON Schema of study files, for editors", "plumbline.study_files:schema_options",
                "plumbline.study_files:write_schema"),
    ),
    "texts -> transformations": (
        Command("generate", "transform the study's texts", "generation.options:generate", "generation.production:run",
                "generation"),
        Command("errors", "show each generator's error rates", "generation.options:errors",
                "generation.output_tables:show_error_rates", "generation"),
        Command("compare", "show how generators' outputs differ", "generation.options:compare",
                "generation.output_tables:show_lengths", "generation"),
    ),
    "transformations -> pairs -> people -> verdicts": (
        _annotation("plan", "estimate the number of pairs and raters that you need, and their cost",
                    "commands.planning:plan_study"),
        _annotation("sample", "draw the pairs that people rate", "commands.campaign:sample"),
        _annotation("preview", "write a page that shows each queue as raters see it", "commands.campaign:preview"),
        _annotation("serve", "run Argilla on this machine, until Ctrl-C", "commands.server:serve"),
        _annotation("users", "manage annotators' accounts: add, invite, list, reset, remove", ""),
        _annotation("publish", "send the pairs to Argilla, where annotators rate them",
                    "commands.campaign:publish_pairs", "add_campaign_options"),
        _annotation("simulate", "rehearse: simulated raters answer",
                    "commands.campaign:simulate_raters", "add_campaign_options"),
        _annotation("crowd", "recruit crowd workers: Prolific, links, MTurk or a rehearsal", "",
                    extra="annotation,crowd"),
        Command("judge", "let language models rate too, and measure how useful their ratings are",
                "annotation.judges.commands:add_judge_actions", extra="generation"),
        _annotation("collect", "fetch the answers given so far", "commands.campaign:collect_answers"),
        Command("import", "make a study from ratings made in another tool",
                "annotation.imports.options:add_import_options", "annotation.imports.command:import_files",
                "annotation"),
        _annotation("status", "show a study's progress and the next step (at any time)",
                    "status.text:show_status", "add_campaign_options"),
        _annotation("review", "show signs of careless answers; exclude raters", "commands.campaign:review"),
        _annotation("withdraw", "exclude pairs from rating and from results, with a reason",
                    "commands.campaign:withdraw_pairs"),
        _annotation("accept", "compute agreement and verdicts", "commands.campaign:reach_verdicts"),
        _annotation("export", "write the ratings as CSV, with a codebook",
                    "commands.campaign:export_ratings"),
        Command("ratings-report", "write the report on raters, agreement and verdicts",
                "plumbline.cli:add_study_options", "annotation.commands.campaign:report", "annotation,report"),
        Command("sheet", "write HEDS 3.0, ARR's checklist D and a datasheet",
                "plumbline.cli:add_study_options", "annotation.commands.campaign:sheet", "annotation,report"),
        _annotation("backup", "write and check a backup of the local Argilla", "commands.server:backup"),
        _annotation("restore", "replace the stopped Argilla's data with a backup", "commands.server:restore"),
    ),
    "accepted transformations -> scores": (
        Command("evaluate", "score models and measure drift on accepted texts", "evaluation.options:evaluate",
                "evaluation.scoring:score_study", "evaluation"),
        Command("scores-report", "write the report on scores and drift: tables and figures",
                "evaluation.options:scores_report", "evaluation.report.page:report_study", "evaluation,report"),
        Command("human-report", "write the report on people and models on the same items",
                "evaluation.options:human_report", "evaluation.human.report:report_study", "evaluation,report"),
    ),
    "benchmarks": (
        Command("select", "choose a smaller benchmark that keeps the ranking of models",
                "evaluation.benchmarks.options:select", "evaluation.benchmarks.selection:select_tasks",
                "evaluation,report"),
        Command("check", "check the data and the scores of tasks", "evaluation.benchmarks.options:check",
                "evaluation.benchmarks.checks:check_tasks", "evaluation"),
        Command("shrink", "make a smaller data set that keeps the ranking of models",
                "evaluation.benchmarks.options:shrink", "evaluation.benchmarks.smaller:shrink", "evaluation"),
        Command("board", "rank models on a benchmark, with intervals", "evaluation.benchmarks.options:board",
                "evaluation.benchmarks.board:rank_models", "evaluation,report"),
    ),
    "instructions of embedding models": (
        Command("instructions", "make wordings of instructions for people to label", "generation.options:instructions",
                "generation.instructions.run:run", "generation"),
        Command("sensitivity", "score models under the wordings that people accepted", "evaluation.options:sensitivity",
                "evaluation.instructions.run:score_wordings", "evaluation"),
        Command("sensitivity-report", "write the report on how wordings change scores and ranks",
                "evaluation.options:sensitivity_report", "evaluation.instructions.page:report_wordings",
                "evaluation,report"),
    ),
    "validated sets": (
        Command("bundle", "export the accepted texts as one file, inspect it, evaluate on it",
                "evaluation.bundle.options:add_bundle_actions", extra="evaluation"),
    ),
    "in the browser": (
        Command("dashboard", "show the study in a browser, until Ctrl-C", "streamlit_app.start:dashboard",
                "streamlit_app.start:start", "dashboard"),
    ),
}  # fmt: skip
COMMANDS = {command.name: command for section in SECTIONS.values() for command in section}
