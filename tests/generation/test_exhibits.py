"""Tables in their printed forms: what is text stays text in Markdown and LaTeX."""

from __future__ import annotations

import re

import pandas as pd

from generation.exhibits import Exhibit, reasons

NASTY = r"a|b_c *d* [e](f) <g> & 50% #1 $x$ \alert{h} ~i ^j"


def test_markdown_keeps_texts_as_text() -> None:
    frame = pd.DataFrame({NASTY: [NASTY, "two\nlines"], "n": ["83.1 ± 0.2", "–"]})
    lines = Exhibit("x", NASTY, frame, frame, (NASTY,)).markdown().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 4 and table[1] == "| --- | ---: |"
    for line in table:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3  # two cells, whatever stands in them
    assert "| two lines | – |" in table
    for escaped in (r"\|", r"\_", r"\*d\*", r"\[e\]", r"\<g\>", r"\&", r"\#1", r"\$x\$", r"\\alert"):
        assert escaped in lines[0] and escaped in table[0] and escaped in lines[-1]


def test_latex_escapes_cells_heads_caption_and_notes() -> None:
    frame = pd.DataFrame({NASTY: [NASTY], "n": ["-3.72 (+1.00)"]})
    drawn = Exhibit("x", NASTY, frame, frame, (NASTY,)).latex()
    assert r"\toprule" in drawn and r"\begin{tabular}{lr}" in drawn and r"\label{tab:x}" in drawn
    # Caption, its short form, note, head and cell: five times, each with all its signs escaped.
    assert drawn.count(r"\textbackslash alert\{h\}") + drawn.count(r"\textbackslash{}alert\{h\}") == 5
    for sign in "&%#$_":
        bare = [line for line in drawn.splitlines() if re.search(rf"(?<!\\)\{sign}", line)]
        # What is left are the comment, the separators of cells and pandas' own commands.
        assert all(line.startswith("% needs") or (sign == "&" and line.endswith(r"\\")) for line in bare), (sign, bare)


def test_reasons_are_said_once_with_all_they_are_given_for() -> None:
    assert reasons(["a", "b", "a", "c"], ["x", "", "x", "x"]) == ("a, c: x",)
    assert reasons(["a", "b"], ["x", "x"]) == ("all: x",)
    assert reasons(["a", "b"], ["", ""]) == ()
