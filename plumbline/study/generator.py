"""How a study names its generators, and when it asks them again; `generation.generators` holds what is behind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from plumbline.addresses import refuse_no_address
from plumbline.error_types import Flag, known_flags
from plumbline.study.base import Line, StudyPart, Variable


class Sampling(StudyPart):
    """How the generator picks tokens; part of every output's identity. Defaults: HTEB, appendix A.1."""

    temperature: float = Field(default=0.0, ge=0, le=2, description="0 takes the likeliest token")
    top_p: float = Field(default=1.0, gt=0, le=1, description="the likeliest tokens that together have this share")
    max_tokens: int = Field(default=1024, ge=1, le=10_000_000, description="where an answer is cut off")


#: The commands with the option --generator, which names a candidate.
TAKE_GENERATOR = ("generation.run", "annotation judge run")


class _Generator(StudyPart):
    model: Line = Field(description="the model's name on the hub, on the server, or (vllm) a local folder")
    revision: str = Field(default="", description="the model's revision")
    sampling: Sampling = Field(default=Sampling(), description="how it picks tokens")

    def identity(self) -> list[Any]:
        """What of this generator changes its outputs: not its address, retries or concurrency."""
        return [self.model, self.revision, self.sampling.model_dump()]


class RecordedGenerator(_Generator):
    """Serves outputs that stand in files (`generation.generators.files`)."""

    kind: Literal["recorded"]
    path: Line = Field(description="a JSONL file of outputs, a folder of such files, or a folder as HTEB publishes it")
    languages: Literal["drawn", "recorded"] = Field(
        default="drawn", description="target languages: drawn from the seed, or those that the recording has"
    )


class NoGenerator(StudyPart):
    """Nothing: all transformations are functions, or files of outputs."""

    kind: Literal["none"] = "none"
    model: Literal["none"] = "none"
    revision: Literal[""] = ""
    sampling: Sampling = Sampling()

    def identity(self) -> list[Any]:
        """It makes no outputs."""
        return ["none"]


class OpenAIGenerator(_Generator):
    """Any OpenAI-compatible chat server: vLLM's, Ollama's, llama.cpp's (`generation.generators.openai`)."""

    kind: Literal["openai"]
    base_url: str = Field(description="the server's address, ending in /v1")
    api_key_env: Variable = Field(
        default="OPENAI_API_KEY", description="environment variable that holds the API key, if the server wants one"
    )
    concurrency: int = Field(default=32, ge=1, le=1000, description="requests in flight at once")
    timeout_seconds: float = Field(default=300.0, gt=0, le=86_400, description="time limit of one request")
    retries: int = Field(
        default=6, ge=0, le=100, description="tries after the first, on 429, 5xx and broken connections"
    )

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        refuse_no_address(value, "http://127.0.0.1:8000/v1 (a key goes into the variable that api_key_env names)")
        return value


class VllmGenerator(_Generator):
    """vLLM in this process, on this machine's GPUs (`generation.generators.vllm`; extra `vllm`)."""

    kind: Literal["vllm"]
    tensor_parallel: int = Field(default=1, ge=1, le=1024, description="GPUs that share one copy of the model")
    data_parallel: int = Field(default=1, ge=1, le=1024, description="copies of the model")
    quantization: Line | None = Field(default=None, description="vLLM's name for it; the checkpoint's own if unset")
    dtype: Line = Field(default="auto", description="vLLM's name for it")
    max_model_len: int | None = Field(
        default=None, ge=1, le=10**9, description="limit for prompt and answer together, in tokens"
    )
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1, description="share of the GPU's memory")
    max_num_seqs: int = Field(default=256, ge=1, le=10**6, description="sequences that the engine decodes at once")
    enforce_eager: bool = Field(default=False, description="no CUDA graphs: starts sooner, runs slower")
    concurrency: int | None = Field(
        default=None, ge=1, le=10**6, description="texts submitted to the engine at once; twice max_num_seqs if unset"
    )

    def identity(self) -> list[Any]:
        """As a server's, and the numbers' precision where the study sets it."""
        precision = {"quantization": self.quantization, "dtype": self.dtype}
        return [*super().identity(), *([] if precision == {"quantization": None, "dtype": "auto"} else [precision])]


_Asked = RecordedGenerator | OpenAIGenerator | VllmGenerator
CandidateSpec = Annotated[_Asked, Field(discriminator="kind")]
GeneratorSpec = Annotated[_Asked | NoGenerator, Field(discriminator="kind")]


class RetrySpec(StudyPart):
    """Which outputs are worth another attempt, and what is different then.

    An output that still has one of `flags` after the last attempt is stored as failed. `wrong_language` and
    `identical` are not among them by default: languages of short texts are told wrongly now and then, and some texts
    have no paraphrase. A flag that the original text has as well never counts here.
    """

    flags: tuple[Flag, ...] = Field(
        default=("empty", "ellipsis", "json_fragment", "reasoning_leak", "prefix_leak", "runaway", "truncated"),
        description="error types that are worth another attempt",
    )
    attempts: int = Field(
        default=3, ge=1, le=20, description="attempts per text, the first included; each has its own seed"
    )
    temperature: float = Field(
        default=0.7, ge=0, le=2, description="temperature from the second attempt on: at 0 a new seed changes nothing"
    )
    more_tokens: float = Field(
        default=2.0, ge=1, le=100, description="factor by which max_tokens grows after an answer that was cut off"
    )

    @field_validator("flags", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        return known_flags(value)
