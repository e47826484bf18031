"""Reads inputs into tables.

An input goes through these steps:

1. `sources` opens it, and returns its bytes decompressed and cleaned, in chunks of whole lines.
2. `sniff` detects its format.
3. `input` reads one input into a `Part`. A log is parsed in parallel chunks (`gctrace`), after
   `wrappers` has removed the log prefixes; a document is read whole (`memstats`, `evidence`).
4. `read` completes each part: `clock` converts timestamps, and `evidence` reads OOM kills,
   systemd, Docker and Kubernetes events from the other messages.
5. `processes` assigns each cycle to a process, and `read` joins the parts into one `Log`.

`follow` reads an input that still grows, and `live_input` keeps its relevant lines. `find_line`
finds a single line.
"""
