"""Raw rows to parts. In: folders of raw rows, and what all shares know together. Out: staged parts of tables."""
