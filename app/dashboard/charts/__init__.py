"""Charts: rows in, altair charts out. Nothing here asks a source or knows Streamlit, except `theme.show_chart`."""
