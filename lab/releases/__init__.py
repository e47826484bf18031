"""The page about Go versions: what each release changed, the recorded figures, and pictures."""
