"""Adapters of the `Model` port, one file each."""
