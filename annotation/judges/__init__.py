"""Language models as judges: their prompts, their scores, and how many ratings the scores replace."""
