"""Colours of figures that are told apart with any colour vision (Okabe & Ito, 2008)."""

BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
