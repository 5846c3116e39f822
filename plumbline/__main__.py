"""Run any command of the platform: `plumbline COMMAND`. `plumbline --help` lists them in the order of the flow."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from plumbline import cli
from plumbline.commands import COMMANDS, SECTIONS, Command
from plumbline.errors import StudyError, nearest
from plumbline.interrupt import PACKAGES
from plumbline.resources import missing
from plumbline.versions import version_of


def main() -> None:
    """Run the command that the first word names; pass it the remaining words."""
    words = sys.argv[1:]
    name = words[0] if words else "--help"
    if name not in COMMANDS:
        cli.run(lambda: _without_command(name))
    command = COMMANDS[name]
    sys.argv = [command.module, *([command.word] if command.word else []), *words[1:]]
    try:
        module = import_module(f"{command.module}.__main__" if _is_package(command.module) else command.module)
        run: Callable[[], int] = module.main
    except ModuleNotFoundError as error:
        missing = error
        cli.run(lambda: _refuse_missing(command, missing))
    cli.run(lambda: _complete(command, run))


def _without_command(name: str) -> int:
    if name in ("-h", "--help"):
        print(_help())
    elif name == "--version":
        print(f"plumbline {version_of('plumbline')}")
    else:
        raise StudyError(f"no command {name!r}; {nearest(name, list(COMMANDS))}; see `plumbline --help`")
    return 0


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    parts = ["usage: plumbline COMMAND [OPTIONS]", "People rate whether transformed texts keep their meaning; models "
             "are evaluated only on what people accept."]  # fmt: skip
    for title, commands in SECTIONS.items():
        parts.append("\n".join([f"{title}:", *(f"  {command.name:<{width}}{command.text}" for command in commands)]))
    parts.append(
        "Run first: plumbline demo\nThen step by step: plumbline generate --study studies/demo.yaml\n"
        "Options of a command: plumbline COMMAND --help"
    )
    return "\n\n".join(parts)


def _is_package(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def _complete(command: Command, run: Callable[[], int]) -> int:
    """Run a command; packages that only some studies need are imported on demand."""
    try:
        return run()
    except ModuleNotFoundError as error:
        return _refuse_missing(command, error)


def _refuse_missing(command: Command, error: ModuleNotFoundError) -> int:
    """Say which packages a command needs installed."""
    if error.name is None or error.name.partition(".")[0] in PACKAGES:
        raise error
    raise missing(f"plumbline {command.name}", error, command.extra) from None


if __name__ == "__main__":
    main()
