"""The findings: every rule with its text, condition, causes and advice."""
