"""Tables in their printed forms: what is text stays text in Markdown and LaTeX."""

from __future__ import annotations

import re
from functools import partial

import pandas as pd
import pytest

from plumbline import cli
from plumbline.exhibits.table import Exhibit, estimates, interval, number, numbers, reasons, with_minus

NASTY = r"a|b_c *d* [e](f) <g> & 50% #1 $x$ \alert{h} ~i ^j"


def test_markdown_keeps_texts_as_text() -> None:
    frame = pd.DataFrame({NASTY: [NASTY, "two\nlines"], "n": ["83.1 ± 0.2", "–"]})
    lines = Exhibit("x", NASTY, frame, frame, (NASTY,)).markdown().splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 4 and table[1] == "| --- | ---: |"
    for line in table:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3  # two cells, whatever stands in them
    assert "| two lines | – |" in table
    for escaped in (r"\|", r"\_", r"\*d\*", r"\[e\]", "&lt;g&gt;", "&amp;", r"\#1", r"\$x\$", r"\\alert"):
        assert escaped in lines[0] and escaped in table[0] and escaped in lines[-1]


def test_latex_escapes_cells_heads_caption_and_notes() -> None:
    frame = pd.DataFrame({NASTY: [NASTY], "n": ["-3.72 (+1.00)"]})
    drawn = Exhibit("x", NASTY, frame, frame, (NASTY,)).latex()
    assert r"\toprule" in drawn and r"\begin{tabular}{>{" in drawn and r"\label{tab:x}" in drawn
    # Caption, head, cell and note, each with all its signs escaped.
    assert drawn.count(r"\textbackslash{}alert\{h\}") == 4
    for sign in "%#$_":
        bare = [line for line in drawn.splitlines() if re.search(rf"(?<!\\)\{sign}", line)]
        # What is left are the comment, the signs that swallow a line's end, and minus signs.
        assert all(line.startswith("% needs") or line.endswith(("{%", "}%")) or "$-$" in line for line in bare), sign
    rows = [line for line in drawn.splitlines() if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [1, 1]  # one separator a row, whatever stands in it


# Each of these was compiled with pdfLaTeX and read in the PDF when the writer was made.
LATEX = {
    r"a_b 5% & #1 $x$ {y}": r"a\_b 5\% \& \#1 \$x\$ \{y\}",
    r"~ ^ \ ": r"\textasciitilde{} \textasciicircum{} \textbackslash{}",
    '< .05 > | "q" `c`': r"\textless{} .05 \textgreater{} \textbar{} ''q'' \textasciigrave{}c\textasciigrave{}",
    "[1, 2] x": "{[}1, 2{]} x",  # else an option of the row's end before it
    "* x": "{*} x",
    "run --study x --": "run -{}-study x -{}-",  # else one dash
    "-3.7 (-0.5) [-1, +2]": "$-$3.7 ($-$0.5) {[}$-$1, +2{]}",
    "all-MiniLM-L6-v2, 5-10": "all-MiniLM-L6-v2, 5-10",
    "two\n\nlines": "two lines",
    "é ß ğ ± – …": "é ß ğ ± – …",
}


@pytest.mark.parametrize("text", LATEX)
def test_latex_prints_what_stands_in_a_cell(text: str) -> None:
    frame = pd.DataFrame({"n": ["1"], "text": [text]})
    drawn = Exhibit("x", "x", frame, frame).latex()
    assert f"1 & {LATEX[text]} \\\\" in drawn.splitlines()
    assert "LuaLaTeX" not in drawn


def test_latex_fits_wide_columns_and_long_tables_to_the_page() -> None:
    frame = pd.DataFrame({"n": ["1"] * 21, "text": ["x" * 41] * 21})  # two lines a row: 40 on one page, 42 on two
    short, long = (Exhibit("x", "x", part, part).latex() for part in (frame.head(20), frame))
    form = r"{r>{\raggedright\arraybackslash}p{0.28\linewidth}}"
    assert rf"\begin{{tabular}}{form}" in short and r"\resizebox" in short and "longtable" not in short
    assert short.startswith("% needs \\usepackage{array,booktabs,graphicx}\n")
    assert rf"\begin{{longtable}}{form}" in long and long.count(r"n & text \\") == 2 and "resizebox" not in long
    assert long.startswith("% needs \\usepackage{array,booktabs,longtable}\n")


def test_latex_has_a_table_for_each_question_with_its_facts_in_the_caption() -> None:
    frame = pd.DataFrame({"Question": ["a", "b", "a"], "System": ["x", "x", "y"], "Mean": ["1", "50", "2"]})
    drawn = Exhibit("x", "Means", frame, frame, ("note",), {"a": "scale 1 to 5, n = 3", "b": "share, n = 2"}).latex()
    first, second = drawn.split("\n\n")
    assert r"\caption{Means: a (scale 1 to 5, n = 3)}" in first and r"\label{tab:x_1}" in first
    assert r"x & 1 \\" in first and r"y & 2 \\" in first and "50" not in first and "Question" not in drawn
    assert r"\caption{Means: b (share, n = 2)}" in second and r"x & 50 \\" in second
    assert all(part.count(r"\begin{tabular}") == part.count("note.") == 1 for part in (first, second))
    assert drawn.startswith("% needs \\usepackage{array,booktabs,graphicx}\n") and drawn.count("% needs") == 1


def test_a_page_leaves_out_columns_without_a_value_and_says_which_tables_have_none() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "value": [float("nan")] * 2, "other": [1.0, float("nan")]})
    columns = {"Name": "name", "Value": numbers("value"), "Other": numbers("other")}
    assert list(Exhibit.of("x", "x", frame, columns).table().frame) == ["Name", "Other"]
    none_known = frame.drop(columns="other")
    names, of_unknown = {"Name": "name"}, {"Name": "name", "Value": numbers("value")}
    found = [(frame, columns), (none_known, of_unknown), (frame[["name"]], names), (none_known, names)]
    assert [Exhibit.of("x", "x", part, heads).is_undefined for part, heads in found] == [False, True, False, False]


def test_reasons_are_said_once_with_all_they_are_given_for() -> None:
    assert reasons(["a", "b", "a", "c"], ["x", "", "x", "x"]) == ("a, c: x",)
    assert reasons(["a", "b"], ["x", "x"]) == ("all: x",)
    assert reasons(["a", "b"], ["", ""]) == ()


def test_numbers_have_minus_signs_where_people_read_them() -> None:
    cells = [
        "-0.50 [-1.00, 0.00]",
        "-3%",
        "-0.2 ± 0.7",
        "-7.8 to +5.0",
        "2026-11-22",
        "all-MiniLM-L6",
        "a text of -3 degrees",
        "3 (+1)",
        "–",
    ]
    shown = with_minus(pd.DataFrame({"a": cells, "n": range(len(cells))}))
    assert list(shown["a"]) == ["−0.50 [−1.00, 0.00]", "−3%", "−0.2 ± 0.7", "−7.8 to +5.0", *cells[4:]]
    assert list(shown["n"]) == list(range(len(cells)))


def test_numbers_look_alike_wherever_they_stand() -> None:
    nothing = float("nan")
    signed = partial(number, sign="+")
    assert (number(0.12345), number(nothing), number(1234.5, 0), number(-0.004)) == ("0.12", "–", "1,234", "0.00")
    assert (number(0.5, 1, times=100), signed(0.5), signed(-0.001), signed(0.001)) == ("50.0", "+0.50", "0.00", "0.00")
    assert interval(-0.5, -0.7, 0.1, signed) == "-0.50 [-0.70, +0.10]"
    assert interval(0.5, nothing, nothing) == "0.50" and interval(nothing, nothing, nothing) == "–"


@pytest.mark.parametrize("most", [40, 80, 160])
def test_a_table_fits_its_terminal_and_names_the_columns_that_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(most))
    why = [f"{place}: the mean of quality is too low, " + "and so on " * 6 for place in range(9)]
    numbers_of = {f"number {place}": [f"{1000 * (place + 1) + row}" for row in range(1, 10)] for place in range(9)}
    frame = pd.DataFrame({"name": [f"row {row}" for row in range(9)], **numbers_of, "why": why})
    text = cli.columns(list(frame), frame.to_numpy().tolist())
    assert max(map(len, text.splitlines())) <= most
    table, _, left_out = text.partition("  left out: ")
    for name, cells in numbers_of.items():  # all of a column, or none of it
        assert [cell in table.split() for cell in cells] == [name not in " ".join(left_out.split())] * 9
    begin = table.index("why")
    words = " ".join(line[begin:].strip() for line in table.splitlines()[2:])
    assert words.split() == " ".join(why).split()


def test_a_table_is_declared_by_its_columns_and_a_wide_one_turns_where_that_is_narrower() -> None:
    frame = pd.DataFrame({"name": ["one", "two"], "n": [1, 2], "low": 0.1, "value": 0.2, "high": 0.3})
    columns = {"Name": "name", "N": "n", "Value": estimates("value")}
    few = Exhibit.of("x", "Two", frame, columns, ["so\nfew \x1b[2J"])  # one line, for a name may be from outside
    assert few.text().splitlines() == [
        "Two",
        "Name  N              Value",
        "----  -  -----------------",
        "one   1  0.20 [0.10, 0.30]",
        "two   2  0.20 [0.10, 0.30]",
        "  so few \\x1b[2J",
    ]
    wide = {"Name": "name"} | {f"A number with a long head {at}": numbers("value") for at in range(6)}
    assert len(Exhibit.of("x", "Two", frame, wide).text().splitlines()) == 1 + 2 + 6  # a column a row
    empty = Exhibit.of("x", "None", frame.head(0), wide)
    assert list(empty.printed.columns) == list(wide) and empty.text() == "None\nnothing"


def test_differences_of_systems_with_long_names_stay_in_a_terminal_and_a_long_table_names_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"laboratory/sentence-model-{number:02}-instruct-multilingual" for number in range(4)]
    printed = pd.DataFrame({"Question": "meaning", "System": names[0], "Other": names})
    printed = printed.assign(**{"Difference [95%]": [f"+{number}.03 [-0.48, +0.53]" for number in range(4)]})
    shown = Exhibit("differences", "Differences", printed, printed).text(most=3)
    assert max(map(len, shown.splitlines())) <= 80 and "left out" not in shown
    assert [f"+{number}.03 [-0.48, +0.53]" in shown for number in range(4)] == [True, True, True, False]
    assert "the first 3 of 4 rows" in shown and "differences.csv" in shown
