"""`plumbline board` on result files that mteb's own classes wrote, held against mteb's own leaderboard tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import mteb
import numpy as np
import pandas as pd
import pytest

from evaluation.benchmarks.board import Rule, of_scores
from evaluation.benchmarks.scores import Scores, of_results, public_tasks, reasons_by_model
from evaluation.tables.comparisons import board, separation_table
from plumbline.statistics.rankings import points_of, rank_intervals, ranks_of
from plumbline.study import ROOT
from plumbline.words import count
from tests.commands import here, words_of
from tests.evaluation.benchmarks.mteb_files import REVISION, run, write_results
from tests.scale import scaled

SNAPSHOT = ROOT.parent / "shared" / "data" / "mmteb" / "scores.parquet"
with_snapshot = pytest.mark.skipif(not SNAPSHOT.is_file(), reason=f"no {SNAPSHOT.name} beside the checkout")
MODELS = {"org/good": 0.70, "org/same": 0.69, "org/fair": 0.68, "org/weak": 0.55}
# mteb's tables show models of its registry alone.
REGISTERED = ("intfloat/e5-base-v2", "intfloat/e5-large-v2", "intfloat/e5-small-v2", "sentence-transformers/LaBSE")


def ranked(folder: Path, benchmark: str, *words: str) -> tuple[pd.DataFrame, str]:
    """The board of the result files in a folder, in its order, and what the command says."""
    status, out, err = run(folder, folder, "--benchmark", benchmark, *words)
    assert status == 0, err
    return pd.read_csv(folder / "board" / "board.csv"), out


# One of each of mteb's rules: Borda; subsets and their mean; public tasks alone; mean of types; mean of tasks.
@pytest.mark.parametrize(
    ("benchmark", "mean", "order"),
    [
        ("MTEB(kor, v1)", "Mean (Task)", "Rank (Borda)"),
        ("HUME(v1)", "Mean (Subset)", "Mean (Subset)"),
        ("RTEB(fin, beta)", "Mean (Task)", "Rank (Borda)"),
        ("MIEB(Img)", "Mean (TaskType)", "Mean (TaskType)"),
        ("ViDoRe(v3)", "Mean (Task)", "Mean (Task)"),
    ],
)
def test_ranks_and_means_are_those_that_mtebs_leaderboard_makes_of_the_files(
    tmp_path: Path, benchmark: str, mean: str, order: str
) -> None:
    write_results(tmp_path, benchmark, dict(zip(REGISTERED, MODELS.values(), strict=True)))
    board, out = ranked(tmp_path, benchmark)
    tasks = public_tasks(benchmark)
    results = mteb.ResultCache(tmp_path).load_results(
        tasks=[task.metadata.name for task in tasks], require_model_meta=False, only_main_score=True
    )
    frame = results.select_tasks(tasks).join_revisions()._to_results_df()
    theirs = mteb.get_benchmark(benchmark)._create_summary_table(frame).df.to_pandas().set_index("Model")
    assert board["model"].tolist() == theirs.index.tolist()
    assert board["rank"].tolist() == theirs["Rank (Borda)"].tolist()
    mine = board["category_mean" if mean == "Mean (TaskType)" else "mean"]
    assert mine.to_numpy() == pytest.approx(theirs[mean].to_numpy())
    assert (f"as on mteb's board, by {order}" in out) == (order != "Rank (Borda)")
    for kind in set(board) & {"Classification", "Clustering", "Reranking", "STS", "Retrieval"} & set(theirs):
        assert board[kind].to_numpy() == pytest.approx(theirs[kind].to_numpy())


def test_intervals_of_the_command_are_those_of_the_functions(tmp_path: Path) -> None:
    write_results(tmp_path, "MTEB(kor, v1)", MODELS)
    board, out = ranked(tmp_path, "MTEB(kor, v1)", "--seed", "7")
    scores = of_results(tmp_path, list(mteb.get_benchmark("MTEB(kor, v1)").tasks), lambda: None)
    assert ranks_of(points_of(scores.array).sum(axis=1)).tolist() == [
        board.set_index("model")["rank"][name] for name in scores.frame.index
    ]
    assert "are not told apart" in out and "of 3 pairs of neighbours" in out and "of all 6 pairs" in out
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert [row["pairs"] for row in about["pairs_told_apart"]] == ["neighbours", "all", "first"]
    assert [row["n"] for row in about["pairs_told_apart"]] == [3, 6, 3]
    page, of_first = (tmp_path / "board" / "index.html").read_text(encoding="utf-8"), about["pairs_told_apart"][2]
    assert f"org/good is first of 4 models over {scores.frame.shape[1]} tasks, by Rank (Borda)." in page
    alike = count(of_first["n"] - of_first["together"], "model is", "models are")
    assert f"{alike} not told apart from the first by Borda rank." in page and page.count("<svg ") == 1
    first = about["models"][0]
    for name in ("rank_low", "rank_single_low", "borda_low", "mean_low"):
        assert first[name] == pytest.approx(board[name][0])
    assert (board["rank_single_low"] >= board["rank_low"]).all()
    assert (board["rank_single_high"] <= board["rank_high"]).all()
    again, _ = ranked(tmp_path, "MTEB(kor, v1)", "--seed", "7")
    pd.testing.assert_frame_equal(board, again)


def test_what_the_document_shows_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "board.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\n(.*?)\n```", text, re.DOTALL)
    write_results(tmp_path, "MTEB(eng, v2)", dict(zip(REGISTERED, MODELS.values(), strict=True)))
    first, *words = words_of(command)
    done = here(first, *(str(tmp_path / word) if word in ("results", "board") else word for word in words))
    assert done.returncode == 0, done.stderr
    columns = re.findall(r"^\| ((?:Rank|Count|Mean|Group)[^|]*) \|", text, re.MULTILINE)
    for column in [name for line in columns for name in line.split(", ")]:
        assert column in done.stdout, column
    for name in re.findall(r"`(board\.[\w.]+)`", text):
        assert (tmp_path / "board" / name).is_file(), name


def test_what_lacks_a_score_is_left_out_by_name_and_equal_models_are_not_told_apart(tmp_path: Path) -> None:
    benchmark = "MTEB(kor, v1)"
    write_results(tmp_path, benchmark, MODELS, without={"org/weak": ["KorSTS"]})
    twin = tmp_path / "results" / "org__same"
    for path in (tmp_path / "results" / "org__good" / REVISION).glob("*.json"):
        if path.name != "model_meta.json":
            (twin / REVISION / path.name).write_bytes(path.read_bytes())
    hole = tmp_path / "results" / "org__fair" / REVISION / "KLUE-STS.json"
    data = json.loads(hole.read_text(encoding="utf-8"))
    data["scores"]["validation"][0]["main_score"] = None
    hole.write_text(json.dumps(data), encoding="utf-8")
    board, out = ranked(tmp_path, benchmark)
    assert board["model"].tolist() == ["org/good", "org/same"] and board["rank"].tolist() == [1, 1]
    assert (
        board[["rank_low", "rank_high", "rank_single_low", "rank_single_high"]].to_numpy().tolist()
        == [[1, 2, 1, 2]] * 2
    )
    assert board["group"].tolist() == ["a", "a"] and "left out: 2 models (org/fair, org/weak)" in out
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert {row["name"]: row["reason"] for row in about["left_out"]} == dict.fromkeys(
        ("org/fair", "org/weak"), "lacks 1 of 6 scores (--gaps models)"
    )
    fewer, _ = ranked(tmp_path, benchmark, "--gaps", "tasks")
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert len(fewer) == 4 and len(about["types"]) == 4  # two of six tasks lack a score
    kept, _ = ranked(tmp_path, benchmark, "--gaps", "keep")
    assert len(kept) == 4 and kept.set_index("model").loc["org/weak", ["mean", "rank_low"]].isna().all()


def test_scores_on_other_data_and_by_faulty_versions_are_named_marked_and_left_out_on_request(tmp_path: Path) -> None:
    benchmark = "MTEB(Scandinavian, v1)"
    write_results(tmp_path, benchmark, MODELS)
    changes: dict[tuple[str, str], dict[str, object]] = {
        ("weak", "TwitterHjerneRetrieval"): {"mteb_version": "1.18.0"},
        ("good", "TwitterHjerneRetrieval"): {"mteb_version": "1.18.1"},  # the first that is right
        ("weak", "SweFaqRetrieval"): {"dataset_revision": "0" * 40},
        ("fair", "SweFaqRetrieval"): {"dataset_revision": "0" * 40},
        ("good", "SweRecClassification"): {"mteb_version": None},
    }
    for (model, task), facts in changes.items():
        file = tmp_path / "results" / f"org__{model}" / REVISION / f"{task}.json"
        result = json.loads(file.read_text(encoding="utf-8")) | facts
        version = result["mteb_version"]
        result["scores"] = {
            split: [part | {"mteb_version": version} for part in parts] for split, parts in result["scores"].items()
        }
        file.write_text(json.dumps(result), encoding="utf-8")
    board, out = ranked(tmp_path, benchmark)
    registered = str(mteb.get_task("SweFaqRetrieval").metadata.revision)[:8]
    named = f"SweFaqRetrieval (2 of 4 models: data set revision 00000000, not {registered})"
    assert named in out and "on 3 of 28 tasks" in out and "--comparable leaves them out" in out
    assert "TwitterHjerneRetrieval (1 of 4 models: mteb 1.18.0, before 1.18.1, whose scores are too low" in out
    assert "SweRecClassification (1 of 4 models: by an unknown version of mteb" in out
    assert board.set_index("model")["not_comparable"].to_dict() == {
        "org/good": 1, "org/same": 0, "org/fair": 1, "org/weak": 2,
    }  # fmt: skip
    table = (tmp_path / "board" / "board.md").read_text(encoding="utf-8")
    assert r"org/weak \*" in table and r"org/same \*" not in table
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert about["not_comparable"]["SweFaqRetrieval"] == dict.fromkeys(
        ("org/fair", "org/weak"), f"data set revision 00000000, not {registered}"
    )
    fewer, out = ranked(tmp_path, benchmark, "--comparable", "--gaps", "tasks")
    assert len(fewer) == 4 and "leaves them out" not in out and named in out and not fewer["not_comparable"].any()
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert len(about["types"]) == 25
    write_results(tmp_path, benchmark, {f"org{number}/more": 0.5 + number / 50 for number in range(6)})
    done = here("select", "--from", str(tmp_path), "--benchmark", benchmark, "--out", str(tmp_path / "small"))
    assert done.returncode == 0 and named.replace("of 4", "of 10") in done.stdout, done.stderr
    tasks = pd.read_csv(tmp_path / "small" / "tasks.csv").set_index("task")["not_comparable"]
    assert tasks.sum() == 4 and tasks["SweFaqRetrieval"] == 2


def test_the_page_names_no_model_first_by_a_mean_that_none_has_and_counts_among_those_with_all_scores() -> None:
    tasks = [f"task{number}" for number in range(8)]
    scores = np.add.outer(np.arange(6) * 0.1, np.linspace(0.1, 0.3, len(tasks)))
    grid = pd.DataFrame(scores, [f"model{number}" for number in range(6)], tasks)
    grid.iloc[5, 3] = np.nan  # it stays first by points

    def said(frame: pd.DataFrame, rule: Rule | None = None) -> list[object]:
        return of_scores(Scores(frame, {}), dict.fromkeys(tasks, "STS"), 1, rule).answer()

    by_points, by_mean = said(grid), said(grid, Rule("all", "Mean (Task)"))
    assert str(by_points[0]).startswith("model5 is first") and str(by_mean[0]).startswith("model4 is first")
    assert " first by Borda rank of the 5 with all scores." in str(by_points[1])
    assert str(said(grid.assign(task0=np.nan), Rule("all", "Mean (Task)"))[0]).startswith("No model is first")


def test_an_unknown_revision_is_never_the_usual_one() -> None:
    task, no = mteb.get_task("SweFaqRetrieval"), "dataset revision not available"  # mteb's words
    files = pd.DataFrame(
        {"model": ["one", "two", "three", "four"], "dataset_revision": ["", no, no, "f" * 40], "file_version": "2.1.0"}
    )
    why = "data set revision unknown, not ffffffff"
    assert reasons_by_model(task, files) == dict.fromkeys(("one", "two", "three"), why)
    assert reasons_by_model(task, files.head(2)).keys() == {"one", "two"}


def test_one_model_and_few_tasks_say_that_there_is_no_interval(tmp_path: Path) -> None:
    write_results(tmp_path, "MTEB(kor, v1)", {"org/one": 0.5})
    board, out = ranked(tmp_path, "MTEB(kor, v1)")
    assert board["rank"].tolist() == [1] and board["rank_single_low"].isna().all()
    assert "there is no other model to compare with" in board["interval_reason"][0] and "not told apart" not in out
    write_results(tmp_path / "few", "RTEB(fra, beta)", MODELS)
    board, out = ranked(tmp_path / "few", "RTEB(fra, beta)")
    assert "No intervals: they need at least 5 tasks, not 1" in out and board["rank_low"].isna().all()


def test_what_cannot_be_ranked_is_one_line(tmp_path: Path) -> None:
    write_results(tmp_path, "MTEB(kor, v1)", {"org/one": 0.5}, without={"org/one": ["KorSTS", "KLUE-STS"]})
    write_results(tmp_path, "MTEB(kor, v1)", {"org/two": 0.5}, without={"org/two": ["KLUE-TC"]})
    (tmp_path / "nothing" / "results").mkdir(parents=True)
    cases = (
        (tmp_path, ("--benchmark", "MTEB(kor, v1)"), "tasks with gaps; --gaps fewest"),
        (tmp_path, ("--benchmark", "MTEB(kor, v9)"), "has no benchmark 'MTEB(kor, v9)'; did you mean"),
        (tmp_path / "nothing", ("--benchmark", "MTEB(kor, v1)"), "no result files of these 6 tasks"),
        (tmp_path / "nothing", (), "no result files of mteb tasks"),
        (tmp_path / "missing", (), "neither an existing folder nor a table"),
    )
    for source, words, says in cases:
        status, _, err = run(tmp_path, source, *words)
        assert status == 2 and err.startswith("error: ") and says in err, err


def english_board() -> pd.DataFrame:
    """The scores of models that have every task of MTEB(eng, v2); a score of fewer entries than wanted is none."""
    rows = pd.read_parquet(SNAPSHOT).query("benchmark == 'MTEB(eng, v2)' and entries >= wanted")
    return rows.astype({"model": str, "task": str}).pivot(index="model", columns="task", values="score").dropna()


@with_snapshot
def test_neighbours_on_mtebs_english_board_are_hardly_ever_told_apart() -> None:
    # mteb's issue 5208, of 181 models: not told apart are 176 of 180 neighbours, 15% of all pairs, 4 from the first.
    grid = english_board()
    assert grid.shape == (183, 41)
    table = separation_table(grid, seed=1337).set_index("pairs")
    assert table["n"].tolist() == [182, 183 * 182 // 2, 182]
    assert table.loc["neighbours", "n"] - table.loc["neighbours", "alone"] == 179
    assert table.loc["all", "alone"] / table.loc["all", "n"] == pytest.approx(0.858, abs=0.003)
    assert table.loc["first", "n"] - table.loc["first", "alone"] == 4
    # Independently: a normal approximation of the paired difference, which knows nothing of resamples.
    points = points_of(grid.to_numpy())
    points = points[np.argsort(-points.sum(axis=1), kind="stable")]
    steps = points[:-1] - points[1:]
    z = np.divide(
        np.abs(steps.mean(axis=1)), steps.std(axis=1, ddof=1) / np.sqrt(41), out=np.zeros(182), where=steps.any(axis=1)
    )
    assert (z < 1.96).sum() == pytest.approx(179, abs=3)


@with_snapshot
def test_single_rank_intervals_of_drawn_tasks_hold_the_rank_over_all_tasks() -> None:
    scores = english_board().to_numpy()
    whole = ranks_of(points_of(scores).sum(axis=1))
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(scaled(8, 100)):
        drawn = pd.DataFrame(scores[:, rng.integers(0, 41, 41)])
        found = rank_intervals(drawn, n_resamples=1000, rng=rng)
        shares.append(((found["rank_single_low"] <= whole) & (whole <= found["rank_single_high"])).mean())
    assert 0.93 < np.mean(shares) < 0.99


# MMTEB, Table 18 (MTEB(eng)): the means of six types, and the column Category, which is the mean over them.
TYPES = ["PairClassification", "Classification", "STS", "Retrieval", "Clustering", "Reranking"]
PRINTED = {
    "e5-mistral-7b-instruct": ([88.4, 75.2, 83.6, 54.8, 51.4, 49.8], 67.2),
    "GritLM-7B": ([87.3, 77.0, 82.5, 53.2, 50.8, 49.6], 66.7),
    "multilingual-e5-large-instruct": ([86.2, 73.2, 84.3, 51.0, 49.9, 48.7], 65.6),
    "multilingual-e5-large": ([84.7, 72.8, 80.6, 49.0, 42.8, 44.7], 62.4),
    "all-mpnet-base-v2": ([83.0, 56.6, 72.2, 41.9, 46.6, 48.4], 58.1),
    "multilingual-e5-base": ([83.6, 70.0, 79.1, 46.1, 42.2, 44.3], 60.9),
    "LaBSE": ([78.9, 66.8, 70.2, 16.8, 36.1, 41.3], 51.7),
}
# The same table's Borda counts; its print broke two ties by rounding errors (270 for 269.5, 211 for 211.5).
COUNTS = {
    "e5-mistral-7b-instruct": 393, "GritLM-7B": 384, "multilingual-e5-large-instruct": 357,
    "multilingual-e5-large": 269.5, "all-mpnet-base-v2": 211, "multilingual-e5-base": 211.5,
    "paraphrase-multilingual-mpnet-base-v2": 188, "all-MiniLM-L12-v2": 172, "all-MiniLM-L6-v2": 149,
    "multilingual-e5-small": 147, "paraphrase-multilingual-MiniLM-L12-v2": 109, "LaBSE": 49,
}  # fmt: skip
DATA = ROOT.parent / "shared" / "data" / "mmteb" / "paper_scores.parquet"
# Of its tasks one of each of two types, where mteb knows the type.
OF_TYPE = {"TwitterSemEval2015": "PairClassification", "STS12": "STS", "STS13": "STS"}


def printed() -> pd.DataFrame:
    return pd.DataFrame([scores for scores, _ in PRINTED.values()], index=list(PRINTED), columns=TYPES)


def test_the_mean_of_types_is_the_papers() -> None:
    table = board(printed(), {name: name for name in TYPES}, seed=1).set_index("model")
    for model, (_, category) in PRINTED.items():
        assert table.loc[model, "category_mean"] == pytest.approx(category, abs=0.06)  # six numbers that were rounded
    # Of each type on a task of its own, by hand: mistral beats 6 5 5 6 6 6 of the others.
    assert table.loc["e5-mistral-7b-instruct", ["borda", "rank"]].tolist() == [34, 1]
    twice = printed().assign(STS13=50.0).rename(columns={"STS": "STS12"})
    types = {name: OF_TYPE.get(name, name) for name in twice}
    found = board(twice, types).set_index("model").loc["LaBSE"]
    # The type's mean is over its tasks, and weighs as one: (70.2 + 50) / 2 = 60.1.
    assert found["STS"] == pytest.approx(60.1)
    assert found["category_mean"] == pytest.approx((78.9 + 66.8 + 60.1 + 16.8 + 36.1 + 41.3) / 6)
    assert found["mean"] == pytest.approx((78.9 + 66.8 + 70.2 + 50 + 16.8 + 36.1 + 41.3) / 7)


@pytest.mark.skipif(not DATA.is_file(), reason=f"no {DATA.name} beside the checkout")
def test_borda_counts_of_the_papers_scores_are_the_papers() -> None:
    scores = pd.read_parquet(DATA).query("benchmark == 'MTEB(eng, v2)'")
    table = scores.pivot(index="model", columns="task", values="score")
    table.index = table.index.str.split("__").str[1]
    assert table.shape == (12, 40) and sum(COUNTS.values()) == 40 * 66  # 0 + 1 + ... + 11 points a task
    found = board(table, dict.fromkeys(table, "any")).set_index("model")
    assert found["borda"].to_dict() == COUNTS


def test_a_table_becomes_a_board(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    tasks = ["STS12", "STS13", "STS14", "Banking77Classification", "ImdbClassification", "NFCorpus"]
    frame = pd.DataFrame(rng.random((3, 6)) / 10 + np.array([[0.6], [0.5], [0.1]]), columns=tasks)
    frame.insert(0, "model", ["one/a", "one/b", "c"])
    frame.loc[2, "STS14"] = np.nan
    frame.to_csv(tmp_path / "scores.csv", index=False)
    status, out, err = run(tmp_path, tmp_path / "scores.csv", "--gaps", "keep")
    assert status == 0, err
    assert out.startswith("3 models ranked over 6 tasks, scores times 100")
    assert "c: lacks 1 of 6 scores" in out and "STS 3, Classification 2, Retrieval 1" in out
    made = pd.read_csv(tmp_path / "board" / "board.csv").set_index("model")
    assert made["rank"].to_dict() == {"one/a": 1, "one/b": 2, "c": 3} and np.isnan(made.loc["c", "mean"])
    assert made.loc["one/a", "category_mean"] == pytest.approx(
        made.loc["one/a", ["STS", "Classification", "Retrieval"]].mean()
    )
    about = json.loads((tmp_path / "board" / "board.json").read_text(encoding="utf-8"))
    assert about["rests_on"]["files"] and about["types"]["NFCorpus"] == "Retrieval" and about["seed"] == 1337
    assert (tmp_path / "board" / "board.tex").read_text(encoding="utf-8").count("one/a") == 1
    status, out, err = run(tmp_path, tmp_path / "scores.csv")
    assert status == 0 and out.startswith("2 models ranked over 6 tasks") and "left out: 1 model (c)" in out
