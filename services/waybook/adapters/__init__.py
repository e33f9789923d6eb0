"""The other sides of the ports."""
