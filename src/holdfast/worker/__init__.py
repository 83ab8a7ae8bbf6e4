"""The worker: takes turns and tasks from the contract, runs them, reports, keeps its leases alive."""
