"""Crowd campaigns: batches of pairs to workers of MTurk or Prolific, their ratings back, and their pay."""
