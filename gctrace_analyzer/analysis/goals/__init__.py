"""What set the heap goals: GOGC, a memory limit, or the heap minimum."""
