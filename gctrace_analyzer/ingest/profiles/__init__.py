"""Profiles of Go programs: `profile.proto` and the text form, as stacks with their values."""
