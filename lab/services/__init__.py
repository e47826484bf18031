"""Records real programs of others under settings and loads, with gctrace or through Prometheus."""
