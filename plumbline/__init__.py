"""The ground floor: the study, the records and all else that every stage shares. No stage's work is in it."""

from plumbline import interrupt

interrupt.arm()
