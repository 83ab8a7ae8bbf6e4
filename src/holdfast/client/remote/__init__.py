"""The contract over a network: the same `Client`, with the engine in another process."""
