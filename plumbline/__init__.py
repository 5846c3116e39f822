"""The ground floor: the study, the records and all else that every stage shares. No stage's work is in it."""

from __future__ import annotations

from plumbline import interrupt

interrupt.arm()

from plumbline import importing  # noqa: E402 (an interrupt is heeded from the first line on)
from plumbline.importing import lazily  # noqa: E402

importing.refuse_strangers()
importing.name_missing_packages()

TYPE_CHECKING = False  # type checkers take it for true; `typing` would be imported before Ctrl-C is heeded
if TYPE_CHECKING:
    from plumbline.study import load_study

__all__ = ["load_study"]

__getattr__, __dir__ = lazily(__name__, {"plumbline.study": ["load_study"]})
