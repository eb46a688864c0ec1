"""Rules about MongoDB. In: partitions of commands, cursors, transactions. Out: findings that name the application."""
