"""Log prefixes: detecting and removing what Docker, systemd, Kubernetes or a logger added."""
