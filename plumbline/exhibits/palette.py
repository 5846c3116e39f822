"""One colour and one shape for each axis everywhere (Okabe and Ito's colours, which all eyes tell apart)."""

from __future__ import annotations

COLOURS = {"lexical_stylistic": "#0072B2", "length": "#D55E00", "language": "#009E73"}
SHAPES = {"lexical_stylistic": "circle", "length": "square", "language": "triangle-up"}
NEUTRAL = "#7F7F7F"
#: Up and down, accepted and rejected: the ends of Figure 6's scale, which no axis has.
GAIN, LOSS = "#4393C3", "#D6604D"
