"""Run any command of the platform: `plumbline COMMAND`. `plumbline --help` lists them in the order of the flow."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from plumbline import cli
from plumbline.commands import COMMANDS, SECTIONS, Command, call
from plumbline.errors import StudyError, nearest
from plumbline.interrupt import PACKAGES
from plumbline.resources import missing_package
from plumbline.versions import version_of


def main(*first: str) -> None:
    """Run the command that the first word names, and end the process; `first` are words before the command line's."""
    cli.run(lambda: run([*first, *sys.argv[1:]]))


def run(words: Sequence[str]) -> int:
    """Run a command.

    Args:
        words: The command's name and its options, as on a command line.

    Returns:
        The exit status.

    Raises:
        PlumblineError: An expected error; its text says what to do.
    """
    name, *rest = words or ["--help"]
    if name in ("-h", "--help"):
        print(_overview())
        return 0
    if name == "--version":
        print(f"plumbline {version_of('plumbline')}")
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise StudyError(f"no command {name!r}; {nearest(name, list(COMMANDS))}; see `plumbline --help`")
    if actions := [action for action in COMMANDS.values() if action.name.startswith(f"{name} ")]:
        action, *rest = rest or ["--help"]
        if action in ("-h", "--help"):
            print(f"{command.text}\n\n{_listed(actions)}\n\nOptions of an action: plumbline {name} ACTION --help")
            return 0
        if f"{name} {action}" not in COMMANDS:
            known = [one.name.partition(" ")[2] for one in actions]
            raise StudyError(f"no action {action!r}; {nearest(action, known)}; see `plumbline {name} --help`")
        command = COMMANDS[f"{name} {action}"]
    try:
        if not command.options:
            return call(words)
        options = command.parser().parse_args(rest)
        status: int = options.run(options)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in PACKAGES:
            raise
        raise missing_package(f"plumbline {command.name}", error, command.extra) from None
    return status


def _overview() -> str:
    parts = ["usage: plumbline COMMAND [OPTIONS]", "People rate whether transformed texts keep their meaning; models "
             "are evaluated only on what people accept."]  # fmt: skip
    for title, commands in SECTIONS.items():
        parts.append(f"{title}:\n{_listed([command for command in commands if ' ' not in command.name])}")
    parts.append(
        "Run first: plumbline demo\nThen step by step: plumbline generate --study studies/demo.yaml\n"
        "Options of a command: plumbline COMMAND --help"
    )
    return "\n\n".join(parts)


def _listed(commands: Sequence[Command]) -> str:
    width = max(map(len, COMMANDS)) + 2
    return "\n".join(f"  {command.name:<{width}}{command.text}" for command in commands)


if __name__ == "__main__":
    main()
