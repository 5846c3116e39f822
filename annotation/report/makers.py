"""What made the texts of a campaign, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.report.material import Material
from annotation.verdicts.tables import display
from generation.jobs import generator_hash
from plumbline.study.generator import RecordedGenerator
from plumbline.study.transformations import EIGHT

# How texts are told of that no generator made.
_FILE = "The outputs of {lower} come from the file {model} ({digest})."
_MADE_BY = {
    "function": "{name} was made by the function {model} (its hash begins with {digest}).",
    "texts": "The texts of {lower} come from the file {model}.",
    "human": "The items of {name} are of the data set {model} (revision, or hash of its file: {digest}).",
    "items": "The items of {lower} are those of the data set, whose hash begins with {digest}.",
}


def listed(things: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(things[:-1]), *things[-1:]]))


def made_by(material: Material) -> list[str]:
    """Which generator and prompts made the texts, what no generator made, and what is not HTEB's."""
    generated = [one for one in material.verdicts if one.prompt_hash]
    makers = {(verdict.model, verdict.generator_hash) for verdict in generated}
    if not makers:
        return _others(material)
    prompts = {display(one.transformation, pooled=False).lower(): one.prompt_hash[:8] for one in generated}
    hashes = listed([f"{name} {digest}" for name, digest in prompts.items()])
    spec = material.study.generator
    told = listed(sorted(model for model, _ in makers))
    if makers == {(spec.model, generator_hash(spec))}:  # else the study names another one by now
        sampling = spec.sampling
        how = f" (temperature {sampling.temperature:g}, top_p {sampling.top_p:g}, up to {sampling.max_tokens:,} tokens)"
        if isinstance(spec, RecordedGenerator):  # how these were sampled the study does not know
            how = "; its outputs were recorded before"
        told += (f", revision {spec.revision}" if spec.revision else "") + how
    return [f"The generator was {told}.", f"The hashes of the prompts begin with: {hashes}.", *_others(material)]


def _others(material: Material) -> list[str]:
    """What no generator made, and what of the transformations is not HTEB's."""
    told = [
        _MADE_BY.get(kind, _FILE).format(
            name=display(name, pooled=False), lower=display(name, pooled=False).lower(), model=model, digest=digest
        )
        for name, model, kind, digest in dict.fromkeys(
            (one.transformation, one.model, one.generator_kind, one.generator_hash[:8])
            for one in material.verdicts
            if not one.prompt_hash
        )
    ]
    kinds = material.study.transforming
    names = dict.fromkeys(one.transformation for one in material.verdicts)
    own = [name for name in names if name in kinds and name not in EIGHT]
    if own:
        axes = [f"{display(name, pooled=False).lower()} (axis {kinds[name].axis})" for name in own]
        told.append(f"Not HTEB's but this study's own {'is' if len(own) == 1 else 'are'} {listed(axes)}.")
    changed = [display(name, pooled=False) for name in own if kinds[name].meaning == "changed"]
    if changed:
        told.append(f"{listed(changed)} {'is' if len(changed) == 1 else 'are'} meant to change the meaning.")
    return told
