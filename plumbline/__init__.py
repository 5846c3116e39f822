"""The parts that every stage shares: the study, its records, errors, files and statistics. No stage's work is here."""

from __future__ import annotations

from plumbline import interrupt

interrupt.arm()

from plumbline import importing  # noqa: E402 (handle Ctrl-C from the first line on)
from plumbline.importing import lazily  # noqa: E402

importing.refuse_strangers()

TYPE_CHECKING = False  # true for type checkers; importing `typing` first would delay the handling of Ctrl-C
if TYPE_CHECKING:
    from plumbline.study import load_study

__all__ = ["load_study"]

__getattr__, __dir__ = lazily(__name__, {"plumbline.study": ["load_study"]})
