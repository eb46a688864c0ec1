"""Components of the dashboard that Streamlit has not: their scripts and styles, and the functions that mount them.

Scripts are constant texts of this folder; what comes from captures goes to them as data and is shown as text.
"""
