"""Operations the background services ask for."""
