"""`plumbline instructions`: the wordings of instructions that a study wants and does not have yet."""

from __future__ import annotations

from plumbline import cli


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog="plumbline instructions",
        description="Word the instructions that embedding models read before a text: a language model proposes them, or"
        " people do, in a file. Can be stopped at any time; run again, it continues.",
        epilog="example: plumbline instructions --study studies/instructions.yaml",
    )
    cli.add_study_options(parser)
    parser.add_argument("--again", action="store_true", help="ask again where no reply was valid, too")
    parser.add_argument("--dry-run", action="store_true", help="show what is left to ask, and ask nothing")
    return cli.handler("generation.instructions.run:run")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
