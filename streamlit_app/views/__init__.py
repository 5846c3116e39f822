"""The dashboard's pages, one a file, which `app` runs: of a folder called `pages` Streamlit would make pages itself."""
