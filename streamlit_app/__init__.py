"""Pages that show and never compute."""
