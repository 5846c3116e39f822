"""The bases of all parts of a study: strict and frozen models, parts of several kinds, and complaints in one line."""

from __future__ import annotations

import copy
import difflib
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError

from plumbline.errors import nearest
from plumbline.languages import language_code
from plumbline.words import shows

_NO_KIND = "has no `kind`; add one: it decides which other keys are allowed"
FAULTY_ENGINE = "faulty_engine"  # type of an error: a name stands for an engine that has faults itself
TAGS = ("<name>", "<text>")  # of a prompt that is named or written out
_KINDS = ("texts", "instructions", "items", "human")
LONGEST = 500  # characters of a complaint, and of a name or path
LARGEST = 2**63 - 1  # what a column of whole numbers can hold
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
# The patterns of studies and rubrics in words.
PATTERNS = {
    r"^([A-Za-z_][A-Za-z0-9_.-]{0,63})?$": "a parameter's name: letters, digits, _ . and -, such as PROLIFIC_PID",
    r"^[a-z0-9][a-z0-9_-]{0,63}$": "made of lower-case letters, digits, - and _, such as my-study",
    r"^([a-z0-9][a-z0-9_-]{0,63})?$": "made of lower-case letters, digits, - and _, such as my-prompts",
    r"^[a-z][a-z0-9_-]{0,63}$": "a lower-case letter, then lower-case letters, digits, - and _, such as brief",
    r"(^[a-z][a-z0-9_-]{0,63}$)|^$": "a lower-case letter, then lower-case letters, digits, - and _, such as ours",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$": "made of letters, digits, ., - and _, such as STS17",
    r"^[A-Za-z_][A-Za-z0-9_]{0,199}$": "made of letters, digits and _, such as OPENAI_API_KEY",
    r"^(\d{4}-\d{2}-\d{2})?$": "a date, such as 2026-03-01",
    r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*)?$": "a module and a function in it, such as package.module:name",
}


def worded(value: str) -> str:
    """Return the value. Raises ValueError if it has no visible character."""
    if not shows(value):
        raise ValueError("is empty; give it a value, or leave the key out")
    return value


def as_is(value: Any) -> Any:
    """The value: for a field whose other forms in a file (a name, a path) are read before it is checked."""
    return value


def _one_line(value: str) -> str:
    if len(value) > LONGEST:
        raise ValueError(f"has {len(value)} characters; at most {LONGEST} are allowed")
    if not value.isprintable():
        raise ValueError(f"{value[:60]!a} contains a line break or an invisible character; take it out")
    return value


Code = Annotated[str, AfterValidator(language_code)]  # of a language, in its usual form: `deu` is `de`
Words = Annotated[str, AfterValidator(worded)]  # something to be read
Line = Annotated[Words, AfterValidator(_one_line)]  # a name, a path: something to be seen
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]  # of the environment
Seed = Annotated[int, Field(ge=0, le=LARGEST)]


#: The keys of settings that exclude each other, and the fault.
Contradiction = tuple[tuple[str, ...], str]


class StudyPart(BaseModel):
    """Base of all parts of a study: frozen, strict about names, and about what is a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    OPEN: ClassVar[bool] = False  #: whether it takes keys that it does not know

    @model_validator(mode="wrap")
    @classmethod
    def _every_fault(cls, data: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        """Check the keys and the numbers, then the rest, and complain about all of them at once."""
        if not isinstance(data, dict):
            return check(data)
        faulty = {key: fault for key, value in data.items() if (fault := cls._fault_of(key, value))}
        if not faulty:
            return check(data)
        faults = []
        for key, words in faulty.items():
            meant = difflib.get_close_matches(str(key), [name for name in cls.model_fields if name not in data], n=1)
            error_type = PydanticCustomError("key", "{words}", {"words": words, "key": key, "meant": [key, *meant]})
            faults.append(InitErrorDetails(type=error_type, input=data))
        try:
            check({key: value for key, value in data.items() if key not in faulty})
        except ValidationError as error:
            for cause in error.errors():
                kind = PydanticCustomError(cause["type"], "{words}", {**cause.get("ctx", {}), "words": cause["msg"]})
                if not set(cause["loc"][:1]) & set(faulty):
                    faults.append(InitErrorDetails(type=kind, loc=cause["loc"], input=cause["input"]))
        raise ValidationError.from_exception_data(cls.__name__, faults)

    @classmethod
    def _fault_of(cls, key: Any, value: Any) -> str:
        """Describe a key that there is not, true or false for a number, or a number that no column can hold."""
        if key not in cls.model_fields:
            return "" if cls.OPEN else f"unknown key {str(key)[:60]!r}; {nearest(str(key), list(cls.model_fields))}"
        types = _scalars(cls.model_fields[key].annotation)
        for item in _items(value) if types & {int, float} else ():
            if isinstance(item, bool) and bool not in types:
                return f"{key}: {str(item).lower()} is not a number"
            if isinstance(item, int) and abs(item) > LARGEST:
                return f"{key}: has more than 18 digits; write a smaller number"
        return ""


class PartOfKinds(StudyPart):
    """Base of a part of which there are several kinds: each is a class, and an entry's `kind` names it.

    A class right below it has what all kinds share, and sets `KINDS` and `NOUN`. Each class below that one is a kind,
    whose field `kind` has its name for a type; defining the class is all that a study file needs to name it.
    """

    KINDS: ClassVar[dict[str, type[Any]]]  #: the classes by the names of their kinds
    NOUN: ClassVar[str]  #: for complaints: `an engine`

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        names = typing.get_args(cls.model_fields["kind"].annotation) if "kind" in cls.model_fields else ()
        cls.KINDS.update(dict.fromkeys(names, cls))

    @model_validator(mode="wrap")
    @classmethod
    def _of_its_kind(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Read an entry as its kind. Raises ValueError for an unknown kind, and for a key that only others have."""
        if "KINDS" not in vars(cls) or not isinstance(data, Mapping):
            return validate(data)
        usual = cls.model_fields["kind"]
        if "kind" not in data and usual.is_required():
            raise ValueError(_NO_KIND)
        name = data.get("kind", usual.default)
        kind = cls.KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"unknown kind {str(name)[:40]!r}; known: {', '.join(map(repr, cls.KINDS))}")
        for key in data:
            if key not in kind.model_fields and any(key in part.model_fields for part in cls.KINDS.values()):
                raise ValueError(f"{key}: does not apply to {cls.NOUN} of kind {name}; take it out")
        part: Self = kind.model_validate(data)
        return part

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if "KINDS" not in vars(cls):
            return handler(schema)
        return {"anyOf": [handler(kind.__pydantic_core_schema__) for kind in cls.KINDS.values()]}


def _scalars(annotation: Any) -> frozenset[type]:
    """The plain types that a field's values, or their parts, may have."""
    if isinstance(annotation, type) and annotation in (int, float, bool, str):
        return frozenset({annotation})
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return frozenset(map(type, arguments))
    return frozenset(kind for argument in arguments for kind in _scalars(argument))


def _items(value: Any) -> Iterator[Any]:
    """Yield a value, or all values in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _items(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _items(inner)
    else:
        yield value


def complaints(error: ValidationError) -> list[str]:
    """Return each complaint of a validation in one line: the place, then the fault."""
    lines = []
    for cause in _of_their_own(error.errors(include_url=False)):
        of_kind = cause["loc"][-1:] == ("kind",)
        parts = cause["loc"][:-1] if of_kind else cause["loc"]
        location = ".".join(  # as the study file has it, without the kinds and tags that pydantic adds
            str(part)
            for previous, part in zip((None, *parts), parts, strict=False)
            if not (part in _KINDS and previous == "subject") and part not in TAGS
        )
        for fault in _in_words(cause["type"], cause, of_kind).split("\n"):  # contradictions, of a study as a whole
            words = fault if len(fault) <= LONGEST else f"{fault[:LONGEST]} ..."
            lines.append(f"{location}: {words}" if location else words)
    return lines


def without_faults(data: Mapping[str, Any], error: ValidationError) -> tuple[dict[str, Any], set[str]]:
    """Return the settings without those that a validation complains about, and the keys of these.

    For an unknown key they have the one that may be meant, too. An entry of a list goes with its list, so that the
    numbers of others stay.
    """
    remaining, left_out = copy.deepcopy(dict(data)), set[str]()
    for cause in error.errors(include_url=False):
        parent: Any = None
        inner: Any = remaining
        keys: list[str] = []
        for part in (*cause["loc"], *([cause["ctx"]["key"]] if cause["type"] == "key" else [])):
            if isinstance(inner, dict) and part in inner:
                parent, inner, keys = inner, inner[part], [*keys, part]
            elif isinstance(inner, list) and isinstance(part, int) and part < len(inner):
                inner = inner[part]
        if parent is not None:
            del parent[keys[-1]]
            meant = cause["ctx"]["meant"] if cause["type"] == "key" else [keys[-1]]
            left_out |= {".".join(map(str, [*keys[:-1], key])) for key in meant}
    return remaining, left_out


def first_complaint(error: ValidationError) -> str:
    """Return the first of `complaints`: enough for a file that no person wrote."""
    return complaints(error)[0]


def _in_words(fault: str, error: ErrorDetails, of_kind: bool) -> str:
    """Say a fault as who writes a study needs it; pydantic's words if these say it."""
    context, value, words = error.get("ctx", {}), error["input"], error["msg"].removeprefix("Value error, ")
    match fault:
        case "string_pattern_mismatch" if context["pattern"] in PATTERNS:
            # without the value: somebody may have written a key for a variable
            words = f"must be {PATTERNS[context['pattern']]}; correct it"
        case "model_type" | "model_attributes_type" | "dict_type":
            words = "is not a mapping; write keys with their values below it, such as name: value"
        case "tuple_type":
            words = 'is not a list; write one, such as [a, b], or a line with "- " for each entry'
        case "string_type" if isinstance(value, (bool, int, float)):
            words = f'{words}; write it in quotes: "{str(value)[:40]}"'
        case "union_tag_invalid":
            words = f"unknown kind {str(context['tag'])[:40]!r}; known: {context['expected_tags']}"
        case "literal_error" if of_kind:
            words = f"unknown kind {str(value)[:40]!r}; known: {context['expected']}"
        case "union_tag_not_found":
            words = _NO_KIND
        case "missing" if of_kind:
            words = _NO_KIND
    return words


def _of_their_own(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the complaints without those that only follow from others.

    Pydantic cannot make a default that depends on a wrong field, and calls a list of wrong entries too short; an engine
    with faults is faulty wherever its name stands for it.
    """
    above = {error["loc"][:end] for error in errors for end in range(len(error["loc"]))}
    engines = any(error["loc"][0:1] == ("engines",) for error in errors)
    return [
        error
        for error in errors
        if error["type"] != "default_factory_not_called"
        and not (error["type"] == "too_short" and error["loc"] in above)
        and not (error["type"] == FAULTY_ENGINE and engines)
    ]


def refuse_duplicates(names: list[str], noun: str) -> None:
    """Raise ValueError for a name that appears twice; `noun` is the kind of thing named."""
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{noun} {name!r} appears twice; give each its own name")


def distinct(noun: str, name: Callable[[Any], str] = str) -> AfterValidator:
    """Return the check of a list field whose entries must have different names, as `refuse_duplicates` says."""

    def check(entries: tuple[Any, ...]) -> tuple[Any, ...]:
        refuse_duplicates(list(map(name, entries)), noun)
        return entries

    return AfterValidator(check)
