"""From ratings to verdicts: the rules fixed beforehand, the decision, and what is doubtful about it."""
