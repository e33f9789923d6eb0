"""The servers that Waybook starts itself where none are given: nats-server and PostgreSQL."""
