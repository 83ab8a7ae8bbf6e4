"""Pure decisions over loaded records. No SQL, no clock, no randomness of their own: all three are handed in."""
