"""The ports on NATS JetStream."""
