"""The pure core: fold, decide, dispatch, claims and lifecycle tables. No IO, no clock, no randomness."""
