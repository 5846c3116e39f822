"""Language models as judges: what they are asked, their answers as scores, and what their scores are worth."""
