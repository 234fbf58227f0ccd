"""Arrays, operators and checks; knows no physics."""
