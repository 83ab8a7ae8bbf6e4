"""The client: what an application uses to start, signal and look at workflows, over the contract."""
