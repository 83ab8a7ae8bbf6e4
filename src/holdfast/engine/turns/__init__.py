"""Operations of the worker that runs an execution."""
