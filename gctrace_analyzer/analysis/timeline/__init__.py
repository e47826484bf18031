"""What happened when: segments, episodes such as thrashing, and the CPU limiter."""
