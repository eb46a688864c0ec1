"""Rules about connections of all protocols. In: flows, logins. Out: findings on what lies between, or never waits."""
