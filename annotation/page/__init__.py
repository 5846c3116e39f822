"""The rating page: its content as data, and the known pairs that raters learn on."""
