"""Tables, charts, pages, colours and spreadsheet files that people read."""
