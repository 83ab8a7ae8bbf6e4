"""The background loops. Each asks the contract for one thing at the right time, and is safe to run in many
processes."""
