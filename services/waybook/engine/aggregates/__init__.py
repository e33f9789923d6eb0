"""State wider than one run, under the same commit protocol: `@policy`, `@grants`, `@budget`, `@thread`, `@sender`."""
