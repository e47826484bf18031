"""Readers of everything except gctrace: OOM kills, systemd, Docker, Kubernetes, JSON files."""
