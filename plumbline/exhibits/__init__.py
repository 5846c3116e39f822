"""The form of what people read: tables, pages, colours, files for spreadsheets."""
