"""Operations on published events, messages and broadcasts."""
