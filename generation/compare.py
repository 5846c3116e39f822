"""`plumbline compare`: the options of the command that compares outputs (`generation.output_tables`)."""

from __future__ import annotations

from generation.errors import add_options
from plumbline import cli


def main() -> int:
    """Parse the command line and run the command."""
    parser = cli.Parser(
        prog="plumbline compare",
        description="Show how long the outputs of a study's generator and candidates are, and how far they are"
        " from their originals (HTEB, Table 23; PTEB's edit distance). `plumbline evaluate` scores embedding models on"
        " them (Table 22).",
        epilog="example: plumbline compare --study studies/demo.yaml",
    )
    add_options(parser)
    return cli.handler("generation.output_tables:show_lengths")(parser.parse_args())


if __name__ == "__main__":
    cli.run(main)
