"""How fast a model encoded, kept for whoever asks how long the next run will take."""

from __future__ import annotations

from pathlib import Path

from plumbline.rates import Stopwatch, keep_rates
from plumbline.study.evaluation import ModelSpec

IN_TORCH = ("sentence_transformers", "mteb")  # kinds that torch runs in this process, where it has one on a GPU


def keep_speed(folder: Path, spec: ModelSpec, model_id: str, watch: Stopwatch, gpu: str) -> None:
    """Note in a study's folder what a model took for the texts that it was given; nothing where it was given none.

    `gpu` is what kind of GPU it was on, empty for none.
    """
    rate = watch.rate("encoding", spec.name, spec.name, model_id)
    if rate and gpu:
        rate = rate.model_copy(update={"gpu": gpu, "gpu_seconds": rate.seconds})
    keep_rates(folder, [rate])


def gpu_of(spec: ModelSpec, device: str) -> str:
    """What kind of GPU a model that was loaded here is on; empty where it is on none."""
    if spec.kind not in IN_TORCH or device.startswith("cpu"):
        return ""
    import torch  # noqa: PLC0415 (takes seconds)

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""
