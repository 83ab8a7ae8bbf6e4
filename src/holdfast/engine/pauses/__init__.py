"""Operations that pause queues and workers."""
