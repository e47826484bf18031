"""Detects and removes the log prefixes that Docker, systemd, Kubernetes or a logger added."""
