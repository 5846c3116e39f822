"""`judge select`: a generator is chosen among made-up candidates by recorded judges."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from annotation.judges.pool import draw_judged
from annotation.judges.run import judge
from annotation.judges.select_generator import FOLDER, choose, family, read_material
from generation.production import generate
from generation.recordings import load_recordings
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study
from tests.commands import here

SAMPLE, ALPHA, BETA, GAMMA = "plumbline-sample", "made/alpha-7b", "made/beta-7b", "made/gamma-7b"
#: judge: its model, and how kind it is
JUDGES = {"alpha": (ALPHA, 0.2), "beta": (BETA, -0.4), "kin": ("other/alpha-70b", 0.0)}
MEANS = {SAMPLE: 4.0, ALPHA: 3.8, BETA: 3.0}
OWN = 0.5  # of alpha's own outputs


def outputs(folder: Path) -> None:
    """Beta returns every fourth text as it is, which is an error type; alpha says a word more than the sample."""
    recorded = load_recordings(ROOT / "studies/demo/outputs").values()
    found = [one for one in recorded if one.transformation == "paraphrasing"]
    for model in (ALPHA, BETA):
        lines = []
        for i, one in enumerate(found):
            more = "Indeed so." if model == ALPHA else "That is all that there is to say."
            said = one.text if model == BETA and i % 4 == 0 else f"{one.output} {more}"
            lines.append(one.model_copy(update={"output": said}).model_dump_json())
        (folder / f"{model[5:]}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def noise(*words: str) -> float:
    return int.from_bytes(hashlib.sha256("|".join(words).encode()).digest()[:2], "big") / 2**16 - 0.5


def answers(study: Study, folder: Path) -> None:
    """What judges say of all outputs: judge + generator + noise of the output, and alpha more of its own."""
    lines: dict[str, list[str]] = {name: [] for name in JUDGES}
    for spec in (study.generator, *study.candidates[:2]):
        by = study.by(spec)
        for pair in draw_judged(by, keep=False):
            for name, (_, kind) in JUDGES.items():
                own = OWN + noise("own", pair.original) / 5 if name == "alpha" and pair.model == ALPHA else 0.0
                score = MEANS[pair.model] + kind + own + noise(pair.model, pair.original) / 5
                low = int(score)
                said = {"quality": {str(low): 1 - (score - low), str(low + 1): score - low}}
                line = {"original": pair.original, "transformed": pair.transformed, "answers": said}
                lines[name].append(json.dumps(line))
    for name, written in lines.items():
        (folder / f"{name}.jsonl").write_text("\n".join(written), encoding="utf-8")


@pytest.fixture
def study(variant: Callable[..., Study], tmp_path: Path) -> Study:
    """The sample's generator and two candidates have outputs, a third one none; no judge has been asked."""
    outputs(tmp_path)
    paths = {ALPHA: "alpha-7b", BETA: "beta-7b", GAMMA: "gamma-7b"}
    made = variant(
        datasets=[{"name": "sample_sts", "task": "sts", "path": "demo/pairs.csv", "language": "en"}],
        transformations=["paraphrasing"],
        candidates=[{"kind": "recorded", "model": m, "path": str(tmp_path / f"{p}.jsonl")} for m, p in paths.items()],
        judges=[
            {"name": name, "questions": ["quality"],
             "engine": {"kind": "recorded", "model": model, "path": str(tmp_path / f"{name}.jsonl")}}
            for name, (model, _) in JUDGES.items()
        ],
    )  # fmt: skip
    for spec in (made.generator, *made.candidates[:2]):
        generate(made.by(spec))
    answers(made, tmp_path)
    return made


def test_a_generator_is_chosen_and_what_is_missing_or_doubtful_is_said(
    study: Study, far: Callable[[Study], Study]
) -> None:
    study = far(study)
    where = ["--study", str(study.file), "--exports", str(study.folder.parent)]
    judge(study)
    early = here("judge", "select", *where)
    assert early.returncode == 0, early.stderr
    assert "No generator can be chosen by quality yet: judges have rated the outputs of 1 of the 3" in early.stdout
    command = f"plumbline judge run {' '.join(where)} --generator {BETA}"
    assert f"Missing: {BETA}: no judge has been asked; run `{command}`" in early.stdout
    assert f"Missing: {GAMMA}: no outputs; run `plumbline generate {' '.join(where)} --gen" in early.stdout
    for spec in study.candidates[:2]:
        judge(study.by(spec))
    done = here("judge", "select", *where)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("Judges choose"))
    # 4.0 and the judges' mean kindness of -0.07; alpha's 3.8 with a third of its praise of itself is 3.90.
    assert line.startswith(f"Judges choose {SAMPLE} by quality: 3.9")
    assert "doubtful: recorded answers stand in for models (" in line
    assert f"{ALPHA} rates its own outputs 0.49 [0.47, 0.50] higher than the fit expects" in line
    assert f"{BETA} rates its own" not in line and "some judges rated their own outputs: alpha, beta" in line
    assert f"some judges share a generator's model family, by name: kin ({ALPHA})" in line
    assert "outputs or judgements are missing (listed below)" in line
    tables = {path.stem: pd.read_csv(path.open("rb")) for path in (study.folder / FOLDER).glob("*.csv")}
    errors = tables["error_rates"].set_index("generator")  # beta's twelve, and one of the sample's that it has too
    assert errors.loc[BETA, "error_rate"] == pytest.approx((12 + 1) / 48) and list(errors["chosen"]) == [True] * 3
    six = tables["table_6"].set_index("judge")
    # Cells are judge + generator: 3.0 - 0.4 of beta by beta; the noise of the 48 texts is 0.2 wide.
    assert float(str(six.loc["beta", BETA])) == pytest.approx(2.6, abs=0.05) and six.loc["letters", BETA] == "c"
    assert float(str(six.loc["alpha", ALPHA])) == pytest.approx(4.5, abs=0.05)
    own = tables["self_preference"].set_index("model")["self_preference"]
    assert own[ALPHA] == pytest.approx(OWN, abs=0.02) and own[BETA] == pytest.approx(0, abs=1e-9)
    effects = tables["effects"].set_index(["role", "name"])["effect"]
    assert effects["judge", "kin"] - effects["judge", BETA] == pytest.approx(0.4)
    four = tables["table_4"].set_index(["judge", "generator"])
    assert (four["edit_distance"] > 0.5).all() and four["seconds"].isna().all()  # they are recordings
    assert set(tables["table_5"]["unit"]) == {"output"} and set(tables["table_5"]["n"]) == {47}  # one of 48 failed
    page = (study.folder / FOLDER / "selection.md").read_text(encoding="utf-8")
    assert f"Judges choose {SAMPLE} by quality: 3.92 \\[3.90, 3.93\\]" in page and "| Holm p |" in page
    record = json.loads((study.folder / FOLDER / "selection.json").read_text(encoding="utf-8"))
    of = {one["generator"]: one for one in record["generators"]}
    assert record["chosen"] == SAMPLE and record["why_none"] == ""
    assert [of[name]["mean"] for name in of] == pytest.approx([float(str(six.loc["average", name])) for name in of])
    assert {name: of[name]["letters"] for name in of} == {SAMPLE: "a", ALPHA: "b", BETA: "c"}
    assert all(one["low"] < one["mean"] < one["high"] and one["judged"] and one["n"] == 24 for one in of.values())
    assert all(len({one[name] for one in of.values()}) == 3 for name in ("outputs_sha256", "judged_outputs"))
    # 47 usable outputs of each by three judges: texts that came back as they were are errors, and are judged.
    assert (record["compared"], record["left_out"]) == (3 * 47, 0)
    assert {one["judge"]: one["n"] for one in record["judges"]} == dict.fromkeys(JUDGES, 3 * 47)
    average = [f"{float(str(six.loc['average', name])):.2f}" for name in (ALPHA, BETA, SAMPLE)]
    assert f"| average | {' | '.join(average)} |" in page


def test_lost_judgements_count_for_nobody_and_few_best_are_judged(study: Study, tmp_path: Path) -> None:
    """kin says nothing readable of ten of the sample's 47 usable outputs; with two best, beta is not compared."""
    file = tmp_path / "kin.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines[:10]:
        line["answers"] = {"quality": "4 or 5"}
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    for spec in (study.generator, study.candidates[0]):
        judge(study.by(spec))
    found = choose(read_material(study, 2))
    ranked = found.tables["ranking"]
    assert set(ranked["generator"]) == {SAMPLE, ALPHA} and ranked["n"].tolist() == [24, 24]  # samples of two texts each
    assert "7% of the judgements are left out because a generator lacks them" in found.doubts  # 10 of 3 x 47
    four = found.tables["table_4"].set_index(["judge", "generator"])
    assert four.loc[("kin", SAMPLE), "failed"] == 10 and BETA not in four.reset_index()["generator"].tolist()
    with pytest.raises(StudyError, match="no judge is asked 'qualty'; did you mean 'quality'"):
        choose(read_material(study, 5), "qualty")


def test_families_are_told_by_names() -> None:
    names = ["Qwen/Qwen3-8B-AWQ", "Qwen3-8B", "google/gemma-3-27b-it", "gemma3:27b", "gpt-oss:20b"]
    assert [family(name) for name in names] == ["qwen", "qwen", "gemma", "gemma", "gpt"]
