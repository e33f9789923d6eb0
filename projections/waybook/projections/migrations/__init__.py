"""Numbered migrations: `front` for the schema that users query, `tables` for each generation's tables."""
