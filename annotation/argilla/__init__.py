"""Everything that speaks to Argilla: accounts, workspaces, publishing, collecting, simulated raters."""
