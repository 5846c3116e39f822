"""A study that starts from a bundle: the very same pairs, for other people to rate, without the first one's answers.

Pairs are written as they are in the bundle and not drawn again, so that neither data, prompts' files nor outputs are
needed, and both campaigns' ratings are of the same pairs by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from annotation.campaign_records import SUPPLY, CampaignRecords
from annotation.offering import refuse_other_prompts
from annotation.rubric import load_rubric
from annotation.sampling.sample import sample_settings
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import FOLDER
from evaluation.bundle.source import BundleSource
from generation.jobs import generator_hash
from plumbline.errors import PlumblineError, StudyError
from plumbline.manifest import stage, write_kept
from plumbline.reading import read_bytes
from plumbline.records import SUGGESTED, Pair
from plumbline.store import atomic, write_table
from plumbline.study import Study, load_study
from plumbline.study.transformations import EIGHT
from plumbline.study.upgrade import modern

_KEPT = ("datasets", "seeds", "prompts", "languages", "sample", "rubric", "wordings", "raters", "acceptance", "quality")
_WRITTEN = {"pairs.parquet", "controls.parquet", SUPPLY.name, "manifest.json"}


@dataclass(frozen=True)
class Again:
    """What was written."""

    study: Study
    pairs: int
    controls: int
    left_out: int  #: controls that need words which the bundle may not hand on


def study_again(
    bundle: Bundle, out: Path, exports: str | Path | None = None, files: Mapping[str, Path] | None = None
) -> Again:
    """Write the study `out` (a YAML file) with a bundle's pairs, controls and rules, and no answers.

    The bundle should have been checked; `files` are copies of texts that may not be handed on, by data set. Raises
    StudyError where the file or its records are there already, and for pairs that this Plumbline would not say are of
    that study: of functions or files of outputs, of other prompts, or rated by another rubric than the one here.
    """
    if out.suffix not in (".yaml", ".yml"):
        raise StudyError(f"--out {out}: a study's file ends in .yaml; name it {out}.yaml")
    content = yaml.safe_dump(_settings(bundle, out), allow_unicode=True, sort_keys=False).encode()
    begun = out.exists() and read_bytes(out) == content  # by a run that was cut off
    if out.exists() and not begun:
        raise StudyError(f"--out {out}: there is such a file; name another, for what people rate there would change")
    source = BundleSource(bundle, bundle.study(), files or {})
    sample = source.pairs()
    with atomic(out, public=True) as file:
        file.write(content)
    try:
        study = load_study(out, exports)
        if study.folder.exists() and not (begun and _unasked(study.folder)):
            raise StudyError(f"{study.folder}: there are records of a study of that name; give --out another name")
        if load_rubric(study).identity() != bundle.rubric.identity():
            raise StudyError(
                f"{bundle.path}: its raters were asked by another rubric {study.rubric!r} than the one here, so that"
                " their ratings cannot be held side by side; get the maker's"
            )
        maker = generator_hash(study.generator) if bundle.settings["generator"].get(FOLDER) else ""
        pairs, controls, n_left_out = _pairs(bundle, sample, maker)
        refuse_other_prompts(CampaignRecords.open(study), [*pairs, *controls])
    except PlumblineError:
        if not begun:
            out.unlink()
        raise
    files_of_study = [study.folder / name for name in ("pairs.parquet", "controls.parquet", SUPPLY.name)]
    with stage(study, "sample", [bundle.path], files_of_study, sample_settings(study.sample, study.judging)):
        write_kept(study, SUPPLY.name, bundle.evidence.supply)
        write_table(files_of_study[1], controls, Pair)
        write_table(files_of_study[0], pairs, Pair)
    return Again(study, len(pairs), len(controls), n_left_out)


def _unasked(folder: Path) -> bool:
    """Whether a study's folder has nothing but what is written here."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} <= _WRITTEN


def _settings(bundle: Bundle, out: Path) -> dict[str, Any]:
    """The study's file: what raters are asked, and by which rules it is judged, as in the bundle."""
    settings = bundle.settings
    rules = settings.get("acceptance", {})  # where judges decided, they would be reported: the campaign has none yet
    decided = rules.get("judges", {}).get("use") == "decide"
    generator = {name: value for name, value in settings["generator"].items() if name != FOLDER}
    if generator["kind"] in ("recorded", "openai"):  # of an equal identity; a server's address is nobody's business
        generator = {**generator, "kind": "recorded", "path": "outputs"}
    datasets = [
        dataset if "mteb" in dataset else {**dataset, "path": Path(dataset["path"]).name}
        for dataset in settings["datasets"]
    ]
    return {
        "name": out.stem,
        "description": f"The pairs of {bundle.manifest.study}, bundle {bundle.short}, rated again",
        **{name: settings[name] for name in _KEPT if name in settings},
        **({"acceptance": {**rules, "judges": "report"}} if decided else {}),
        "datasets": datasets,
        "transformations": list(_transformations(bundle)),
        "generator": modern({"generator": generator})["generator"],
    }


def _transformations(bundle: Bundle) -> Iterator[Any]:
    """HTEB's by name, others written out with their prompts."""
    for name, transformation in bundle.transformations.items():
        if name in EIGHT:
            yield name
        elif not transformation.prompts:
            raise StudyError(
                f"{bundle.path}: {name} was made by {transformation.model}, which is not in the bundle, and what"
                " no prompts made is not rated again from it"
            )
        else:
            yield {
                **transformation.definition,
                "calls": [{"text": p.text, "language": p.language} for p in transformation.prompts],
            }


def _pairs(bundle: Bundle, sample: list[Pair], maker: str) -> tuple[list[Pair], list[Pair], int]:
    """The sample and the controls in one wave, and how many controls lack words."""
    kind = bundle.evidence.study.generator.kind
    by_key = {pair.key: pair.original for pair in sample}
    controls, of_bundle = [], bundle.evidence.collected.control_pairs
    shown = {
        control.pair_id for control in of_bundle if control.control == SUGGESTED
    }  # of an experiment, which is not made again
    for control in of_bundle:
        if {control.pair_id, control.repeats} & shown:
            continue
        original = control.original or (by_key.get(control.key, "") if control.control == "repeat" else "")
        controls.append(control.model_copy(update={"original": original}))
    whole = [control for control in controls if control.original and control.transformed]
    again = [[_first(pair, kind, maker) for pair in rows] for rows in (sample, whole)]
    return again[0], again[1], len(controls) - len(whole)


def _first(pair: Pair, kind: str, named: str) -> Pair:
    """A pair in the first wave; what a server made is served from records, what a folder made has its name's hash."""
    changed: dict[str, Any] = {"generator_kind": kind} if pair.generator_kind == "openai" else {}
    if named and pair.generator_kind in ("vllm", "openai", "recorded"):
        changed["generator_hash"] = named
    return pair.model_copy(update={"wave": 1, **changed})
