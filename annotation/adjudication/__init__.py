"""Where people and judges disagree, read by a person afterwards: what is adjudicated is never a rating."""
