"""The dashboard's pages, which `app` draws. Streamlit would make pages itself of a folder called `pages`."""
