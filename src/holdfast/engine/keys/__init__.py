"""Operations on API keys, orgs and the record of acts."""
