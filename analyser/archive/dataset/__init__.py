"""A dataset on disk. In: its folder. Out: its tables; and changes of its parts that count all at once."""
