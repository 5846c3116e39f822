"""The ground floor: the study, the records and all else that every stage shares. No stage's work is in it."""

from __future__ import annotations

from plumbline import interrupt

interrupt.arm()

from plumbline import collisions  # noqa: E402 (an interrupt is heeded from the first line on)
from plumbline.lazily import lazily  # noqa: E402

collisions.refuse_strangers()
collisions.name_missing_packages()

TYPE_CHECKING = False  # type checkers take it for true; `typing` would be imported before Ctrl-C is heeded
if TYPE_CHECKING:
    from plumbline.study import load_study

__all__ = ["load_study"]

__getattr__, __dir__ = lazily(__name__, {"plumbline.study": ["load_study"]})
