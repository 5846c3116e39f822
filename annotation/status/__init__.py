"""The status of a study: `plumbline status`."""
