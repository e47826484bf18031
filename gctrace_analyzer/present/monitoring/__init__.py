"""What is copied to a monitoring system: rules for Prometheus, a dashboard for Grafana."""
