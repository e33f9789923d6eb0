"""The roles of a deployment, one small package each, and `bootstrap`, the one place that joins everything."""
