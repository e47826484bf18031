"""Plots: described once, drawn by Plotly or Matplotlib."""
