"""From an analysis to something a person or a program reads: one file per format."""
