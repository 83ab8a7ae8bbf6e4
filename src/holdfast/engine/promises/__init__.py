"""Operations on promises."""
