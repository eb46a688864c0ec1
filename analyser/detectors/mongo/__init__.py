"""Rules about MongoDB. In: partitions of commands, cursors and transactions. Out: findings that name the application."""
