"""Many processes: the same analysis on a Dask cluster, a row each."""
