"""Charts: rows in, altair charts out. Nothing here asks a source; `theme.py` shows them, and alone knows Streamlit."""
