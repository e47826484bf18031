"""Analyses the logs of many processes in parallel, on a Dask cluster."""
