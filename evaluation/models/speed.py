"""How fast a model encoded, kept for whoever asks how long the next run will take."""

from __future__ import annotations

from evaluation.models.encoder import Encoder
from plumbline.rates import keep_rates
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

_ON_GPUS = {"sentence_transformers", "mteb"}  # kinds that this process runs, where it has a GPU


def keep_speed(study: Study, spec: ModelSpec, model_id: str, encoder: Encoder) -> None:
    """Note what a model took for the texts that it was given in this process; nothing where it was given none."""
    rate = encoder.watch.rate("encoding", spec.name, spec.name, model_id)
    gpu = _gpu(spec, study.evaluation.device) if rate else ""
    if rate and gpu:
        rate = rate.model_copy(update={"gpu": gpu, "gpu_seconds": rate.seconds})
    keep_rates(study, [rate])


def _gpu(spec: ModelSpec, device: str) -> str:
    """What kind of GPU a model that was loaded here is on; empty where it is on none."""
    if spec.kind not in _ON_GPUS or device.startswith("cpu"):
        return ""
    import torch  # noqa: PLC0415 (takes seconds)

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else ""
