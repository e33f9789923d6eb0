"""A scheduler on ports in memory, beside a run that a test decides by hand."""
