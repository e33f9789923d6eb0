"""Looks at runs: their history event by event, and why one is not moving. Reads STATE, changes nothing."""
