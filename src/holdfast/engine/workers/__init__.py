"""Operations on worker sessions."""
