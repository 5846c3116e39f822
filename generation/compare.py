"""`plumbline compare`: the options of the command that compares outputs (`generation.output_tables`)."""

from __future__ import annotations

from generation.errors import add_options
from plumbline import cli


def main() -> int:
    """The command line."""
    parser = cli.Parser(
        prog="plumbline compare",
        description="How long the outputs of a study's generator and candidates are, and how far from the originals"
        " (HTEB, Table 23; PTEB's edit distance). What embedding models score on them (Table 22) is the"
        " evaluation's: plumbline evaluate.",
        epilog="example: plumbline compare --study studies/demo.yaml",
    )
    add_options(parser)
    return cli.handler("generation.output_tables:show_lengths")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
