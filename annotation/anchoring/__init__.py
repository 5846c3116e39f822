"""An experiment: how far raters are drawn towards judges' scores that they see (`raters.suggestions: half`)."""
