"""security_scan: what a mail hides, orders and lures to, found without a model where that is possible."""
