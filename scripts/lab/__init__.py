"""The lab of scripts/services: real Go programs, their builds, inputs, loads and recordings."""
