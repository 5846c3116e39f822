"""From a data set to its score, by mteb's task classes."""
