"""Language models: asked in process, over HTTP or on Ray, with a table of their answers that can be resumed."""
