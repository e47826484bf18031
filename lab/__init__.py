"""Records real Go programs, and evaluates predictions and findings on the recordings."""
