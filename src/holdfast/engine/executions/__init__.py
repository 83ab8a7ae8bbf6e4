"""Operations on executions."""
