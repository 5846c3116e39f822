"""People do the tasks that embedding models are scored on: what they are asked, and what they answered."""
