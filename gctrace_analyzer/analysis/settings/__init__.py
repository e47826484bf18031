"""The settings a program ran under: known from the inputs, or inferred from its heap goals."""
