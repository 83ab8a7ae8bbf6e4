"""Operations of the worker that runs a task."""
