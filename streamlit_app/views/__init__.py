"""The dashboard's pages, which `app` draws: of a folder called `pages` Streamlit would make pages itself."""
