"""Which captures a run takes in. In: patterns and the manifest. Out: files in order, and ranges of them."""
