"""What happened when: segments of the time, episodes such as thrashing, and the CPU limiter."""
