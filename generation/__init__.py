"""Texts in, transformations out; and, as the lowest package, the study and the records that all stages share."""

from generation import interrupt

interrupt.arm()
