"""The plots, each named after what it shows."""
