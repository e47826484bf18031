"""What to set: the runtime's own rules, predictions from them, and advice."""
