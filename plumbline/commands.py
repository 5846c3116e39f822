"""The commands of `plumbline` in the order of the flow, and the application that reads their words.

A command is one function: its parameters are its options, and its docstring is its help. It is imported when its words
are read, so that a command costs only its own imports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App, Group, Parameter

from plumbline import cli

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from cyclopts.help.inline_text import InlineText
    from rich.console import Console, ConsoleOptions


@dataclass(frozen=True)
class Command:
    """A command of `plumbline`."""

    name: str  #: one word; two for an action, such as `users add`
    text: str  #: one line about what it does: its function's docstring begins with it
    function: str = ""  #: `module:function`; empty for a group of actions
    extra: str = ""  #: extras that it needs


SECTIONS = {
    "getting started": (
        Command("demo", "run the whole flow on the sample study, with simulated raters", "plumbline.demo:demo"),
        Command("studies", "copy the sample studies into ./studies, to run or adapt",
                "plumbline.study_files:copy_studies"),
        Command("init", "make a study from your own file of texts", "generation.study_of_file:make_study",
                "generation"),
        Command("schema", "write the JSON Schema of study files, for editors", "plumbline.study_files:write_schema"),
        Command("completion", "print a script that lets your shell complete commands, options, choices and files",
                "plumbline.commands:completion"),
    ),
    "texts -> transformations": (
        Command("generate", "transform the study's texts", "generation.production:transform_texts", "generation"),
        Command("errors", "show each generator's error rates", "generation.output_tables:show_error_rates",
                "generation"),
        Command("compare", "show how generators' outputs differ", "generation.output_tables:show_lengths",
                "generation"),
    ),
    "transformations -> pairs -> people -> verdicts": (
        Command("plan", "estimate the number of pairs and raters that you need, and their cost",
                "annotation.commands.planning:plan_study", "annotation"),
        Command("sample", "draw the pairs that people rate", "annotation.commands.campaign:sample", "annotation"),
        Command("preview", "write a page that shows each queue as raters see it",
                "annotation.commands.campaign:preview", "annotation"),
        Command("serve", "run Argilla on this machine, until Ctrl-C", "annotation.commands.server:serve", "annotation"),
        Command("users", "manage annotators' accounts: add, invite, list, reset, revoke, remove"),
        Command("users add", "create annotators' accounts; their passwords are shown once",
                "annotation.commands.annotators:add_users", "annotation"),
        Command("users invite", "create accounts for a study's people, and write an invitation for each",
                "annotation.commands.annotators:invite_users", "annotation"),
        Command("users list", "show all accounts with languages and number of answers",
                "annotation.commands.annotators:list_users", "annotation"),
        Command("users reset", "set a new random password for an account", "annotation.commands.annotators:reset_users",
                "annotation"),
        Command("users revoke", "end an annotator's link, and the sessions that it opened",
                "annotation.commands.annotators:revoke_users", "annotation"),
        Command("users remove", "delete an annotator's account", "annotation.commands.annotators:remove_users",
                "annotation"),
        Command("publish", "send the pairs to Argilla, where annotators rate them",
                "annotation.commands.campaign:publish_pairs", "annotation"),
        Command("simulate", "rehearse: simulated raters answer", "annotation.commands.campaign:simulate_raters",
                "annotation"),
        Command("crowd", "recruit crowd workers: Prolific, links, MTurk or a rehearsal"),
        Command("crowd plan", "show what would be offered and what it costs; nothing is created",
                "annotation.crowd.commands:show_plan", "annotation,crowd"),
        Command("crowd launch", "offer batches to workers, within the limits on cost and on batches per worker",
                "annotation.crowd.commands:launch_batches", "annotation,crowd"),
        Command("crowd status", "show the state of the campaign, and who was refused in another browser",
                "annotation.crowd.commands:show_campaign", "annotation,crowd"),
        Command("crowd approve", "approve submissions, which pays them", "annotation.crowd.commands:approve_work",
                "annotation,crowd"),
        Command("crowd reject", "reject submissions, with a reason: they are not paid, and their ratings are excluded",
                "annotation.crowd.commands:reject_work", "annotation,crowd"),
        Command("crowd bonus", "pay bonuses where the work took longer than the reward pays for",
                "annotation.crowd.commands:pay_bonuses", "annotation,crowd"),
        Command("crowd release",
                "let a participant go on in another browser than the one that began: the next one that comes is theirs",
                "annotation.crowd.commands:release_worker", "annotation,crowd"),
        Command("crowd close", "stop for good: nobody new can begin, and workers who have begun may finish",
                "annotation.crowd.commands:close_campaign", "annotation,crowd"),
        Command("judge", "let language models rate too, and measure how useful their ratings are"),
        Command("judge run",
                "have the study's judges rate outputs, or its models do people's tasks; resumes where it stopped",
                "annotation.judges.commands:run_judges", "generation"),
        Command("judge gold", "have judges score pairs that have gold scores, and compare the scores (PTEB)",
                "annotation.judges.commands:judge_gold", "generation"),
        Command("judge select", "choose the generator among the study's candidates (HTEB, PTEB)",
                "annotation.judges.commands:choose_generator", "generation"),
        Command("judge check", "compare judges with people's ratings", "annotation.judges.commands:check_judges",
                "generation"),
        Command("collect", "fetch the answers given so far, in Argilla and by a crowd",
                "annotation.commands.campaign:collect_answers", "annotation,crowd"),
        Command("import", "make a study from ratings made in another tool", "annotation.imports.command:import_files",
                "annotation"),
        Command("status", "show a study's progress and the next step (at any time)",
                "annotation.status.text:show_status", "annotation"),
        Command("review", "show signs of careless answers, and a crowd's work that waits; exclude raters",
                "annotation.commands.campaign:review", "annotation"),
        Command("withdraw", "exclude pairs from rating and from results, with a reason",
                "annotation.commands.campaign:withdraw_pairs", "annotation"),
        Command("accept", "compute agreement and verdicts", "annotation.commands.campaign:reach_verdicts",
                "annotation"),
        Command("export", "write the ratings as CSV, Excel file or data set",
                "annotation.commands.campaign:export_ratings", "annotation"),
        Command("ratings-report", "write the report on raters, agreement and verdicts",
                "annotation.commands.campaign:report", "annotation,report"),
        Command("sheet", "write HEDS 3.0, ARR's checklist D and a datasheet", "annotation.commands.campaign:sheet",
                "annotation,report"),
        Command("backup", "write and check a backup of the local Argilla", "annotation.commands.server:backup",
                "annotation"),
        Command("restore", "replace the stopped Argilla's data with a backup", "annotation.commands.server:restore",
                "annotation"),
    ),
    "accepted transformations -> scores": (
        Command("evaluate", "score models and measure drift on accepted texts", "evaluation.scoring:score_study",
                "evaluation"),
        Command("scores-report", "write the report on scores and drift: tables and figures",
                "evaluation.report.page:report_study", "evaluation,report"),
        Command("human-report", "write the report on people and models on the same items",
                "evaluation.human.report:report_study", "evaluation,report"),
    ),
    "benchmarks": (
        Command("select", "choose a smaller benchmark that keeps the ranking of models",
                "evaluation.benchmarks.selection:select_tasks", "evaluation,report"),
        Command("check", "check the data and the scores of tasks", "evaluation.benchmarks.checks:check_tasks",
                "evaluation"),
        Command("shrink", "make a smaller data set that keeps the ranking of models",
                "evaluation.benchmarks.smaller:shrink", "evaluation"),
        Command("board", "rank models on a benchmark, with intervals", "evaluation.benchmarks.board:rank_models",
                "evaluation,report"),
    ),
    "instructions of embedding models": (
        Command("instructions", "make wordings of instructions for people to label",
                "generation.instructions.run:make_wordings", "generation"),
        Command("sensitivity", "score models under the wordings that people accepted",
                "evaluation.instructions.run:score_wordings", "evaluation"),
        Command("sensitivity-report", "write the report on how wordings change scores and ranks",
                "evaluation.instructions.page:report_wordings", "evaluation,report"),
    ),
    "validated sets": (
        Command("bundle", "export the accepted texts as one file, inspect it, evaluate on it"),
        Command("bundle export", "write a study's bundle", "evaluation.bundle.commands:export_study", "evaluation"),
        Command("bundle inspect", "check a bundle and show its contents", "evaluation.bundle.commands:inspect",
                "evaluation"),
        Command("bundle evaluate", "score models on the accepted transformations",
                "evaluation.bundle.commands:evaluate", "evaluation"),
    ),
    "in the browser": (
        Command("dashboard", "show the study in a browser, until Ctrl-C", "streamlit_app.start:start", "dashboard"),
    ),
}  # fmt: skip
COMMANDS = {command.name: command for section in SECTIONS.values() for command in section}


def application() -> App:
    """Return the application with all commands, none of them imported yet."""
    app = App(
        name="plumbline",
        version_flags=(),
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        help_format="plaintext",
        help_formatter=_Help(),
        group_arguments=Group("Arguments"),
        group_parameters=Group("Options"),
        default_parameter=Parameter(
            negative=(), show_default=False, show_env_var=False, json_list=False, json_dict=False
        ),
    )
    groups = {"": app}
    for command in COMMANDS.values():
        group, _, name = command.name.rpartition(" ")
        if command.function:
            groups[group].command(command.function, name=name)
        else:
            groups[name] = App(name=name)
            app.command(groups[name])
    return app


class _Help:
    """Prints a command's help: the docstring as it stands, then options and explanations in two columns."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        print(f"usage: {str(usage).strip().removeprefix('Usage: ')}\n")

    def render_description(self, console: Console, options: ConsoleOptions, description: InlineText) -> None:
        print(f"{description.primary_renderable}\n")

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        rows = []
        for entry in panel.entries:
            text = " ".join(str(getattr(entry.description, "primary_renderable", "")).split())
            choices = f"one of {', '.join(entry.choices)}" if entry.choices else ""
            needed = "required" if entry.required else ""
            more = f" ({'; '.join(filter(None, [choices, needed]))})" if choices or needed else ""
            rows.append((", ".join(entry.display_labels_with_metavar), text + more))
        if rows:
            print(f"{str(panel.title).lower()}:\n{cli.explained(rows)}\n")


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that lets your shell complete commands, options, choices and files.

    Example: plumbline completion bash > ~/.plumbline-completion && echo '. ~/.plumbline-completion' >> ~/.bashrc

    Args:
        shell: The shell.
    """
    script = application().generate_completion(shell=shell)
    match shell:  # where the script knows nothing better, a word may be a file, such as a study; fish says so itself
        case "bash":
            script = script.replace("complete -F ", "complete -o default -F ")
        case "zsh":
            unknown = r"('(?:\*?--[\w-]+\[.*\]:[\w-]+|[0-9*]:(?:[^:\\]|\\.)*))(?=' \\$)"
            script = re.sub(unknown, r"\1:_files", script, flags=re.MULTILINE)
            script += "\ncompdef _cyclopts_plumbline plumbline\n"
    print(script)
