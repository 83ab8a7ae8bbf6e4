"""The gRPC door: WorkflowDispatch for applications, WorkerService for workers. Sees only the contract."""
