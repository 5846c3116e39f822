"""What is measured beside the scores: drift of texts, and scores on accepted pairs alone."""
