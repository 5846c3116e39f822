"""Where a study stands: `plumbline status`."""
