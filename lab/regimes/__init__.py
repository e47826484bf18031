"""Records programs whose settings are known at every moment, and change while they run."""
