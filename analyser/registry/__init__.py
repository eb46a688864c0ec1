"""What tables are. In: nothing. Out: every table with its columns (`tables.TABLES`), SQL over them, and which rows are wanted."""
