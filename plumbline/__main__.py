"""Run any command of the platform: `plumbline COMMAND`. `plumbline --help` lists them in the order of the flow."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence

from cyclopts import CycloptsError

from plumbline import cli
from plumbline.commands import COMMANDS, SECTIONS, Command, application
from plumbline.errors import StudyError, nearest
from plumbline.interrupt import PACKAGES
from plumbline.resources import missing_package, version_of

_HELP = ("-h", "--help")


def main(*first: str) -> None:
    """Run the command that the first word names, and end the process; `first` are words before the command line's."""
    cli.run(lambda: run([*first, *sys.argv[1:]]))


def run(words: Sequence[str]) -> int:
    """Run a command.

    Args:
        words: The command's name and its options, as on a command line.

    Returns:
        The exit status. A command that returns its study's options has ended a step, and the next one is printed.

    Raises:
        PlumblineError: An expected error; its text says what to do.
    """
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    first, second = [*words, "", ""][:2]
    if first in ("", *_HELP):
        print(_overview())
        return 0
    if first == "--version":
        print(f"plumbline {version_of('plumbline')}")
        return 0
    command = COMMANDS.get(f"{first} {second}") or COMMANDS.get(first)
    if command is None:
        hint = nearest(first, ["help", *COMMANDS], "see the list of commands")
        raise StudyError(f"no command {first!r}; {hint} (`plumbline --help`)")
    if not command.function:
        print(_actions(command, second))
        return 0
    try:
        done = application()(words)
        if isinstance(done, cli.StudyOptions):
            _say_next(done)
            return 0
        return int(done or 0)
    except CycloptsError as error:
        raise StudyError(f"{fault_in_words(error)}; see `plumbline {command.name} --help`") from None
    except ImportError as error:
        cause = error.__cause__ or error  # cyclopts says only which module it was importing
        if not isinstance(cause, ModuleNotFoundError) or (cause.name or "").partition(".")[0] in ("", *PACKAGES):
            raise
        raise missing_package(f"plumbline {command.name}", cause, command.extra) from None


def fault_in_words(error: CycloptsError) -> str:
    """Return what is wrong with a command's words, in one line that names the option or the argument."""
    fault, name = " ".join(str(error).split()).rstrip("."), error.argument.name if error.argument else ""
    if name.startswith("-") or name in fault:
        return fault
    return f"Invalid value for {name}: {fault}"  # cyclopts names options only


def _say_next(options: cli.StudyOptions) -> None:
    """Print the next step of the study of a command that ended a step."""
    try:
        importlib.import_module("annotation.status.text").say_next_of(options)
    except ModuleNotFoundError as error:  # a host for generation alone does not have the packages of a campaign
        if (error.name or "").partition(".")[0] in PACKAGES:
            raise


def _actions(group: Command, word: str) -> str:
    """Return the list of a group's actions. Raises StudyError if a word is none of them."""
    actions = {name.partition(" ")[2]: action for name, action in COMMANDS.items() if name.startswith(f"{group.name} ")}
    if word not in ("", *_HELP):
        raise StudyError(f"no action {word!r}; {nearest(word, list(actions))}; see `plumbline {group.name} --help`")
    return f"{group.text}\n\n{_listed(actions.values())}\n\nOptions of an action: plumbline {group.name} ACTION --help"


def _overview() -> str:
    parts = ["usage: plumbline COMMAND [OPTIONS]", "People rate whether transformed texts keep their meaning; models "
             "are evaluated only on what people accept."]  # fmt: skip
    for title, commands in SECTIONS.items():
        parts.append(f"{title}:\n{_listed([command for command in commands if ' ' not in command.name])}")
    parts.append(
        "Run first: plumbline demo\nThen step by step: plumbline generate --study studies/demo.yaml\n"
        "Options of a command: plumbline COMMAND --help, or plumbline help COMMAND"
    )
    return "\n\n".join(parts)


def _listed(commands: Iterable[Command]) -> str:
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(f"  {command.name:<{width}}{command.text}" for command in commands)


if __name__ == "__main__":
    main()
