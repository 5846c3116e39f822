"""`plumbline instructions`: the options of the command that makes a study's missing wordings."""

from __future__ import annotations

from plumbline import cli


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline instructions",
        description="Make wordings of the instructions that embedding models read before a text: a language model"
        " proposes them, or people list them in a file. You can stop it at any time; run it again to continue.",
        epilog="example: plumbline instructions --study studies/instructions.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument("--again", action="store_true", help="also repeat calls that got no valid reply")
    parser.add_argument("--dry-run", action="store_true", help="show how many calls are left, and make no call")
    return cli.handler("generation.instructions.run:run")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
