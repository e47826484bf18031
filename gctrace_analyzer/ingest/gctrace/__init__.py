"""From bytes to columns: how a line of GODEBUG=gctrace=1 output becomes a row of `cycles`.

A chunk of a log takes these steps, in this order:

1. `grammar` defines every line format (a "shape") once, as a template.
2. `blanks` replaces tabs and non-breaking spaces within records, if there are any.
3. `parse` finds the runtime's lines in the chunk and has the log prefixes removed.
4. `records` reads lines that are a record of a cycle and nothing else, with the compiled core if
   it is installed.
5. `patterns` reads the others with the regular expression of each shape, and finds suspects:
   lines that look like part of a record.
6. `columns` turns the fields into the columns of the tables in `schema.py`.

`chunk.ChunkResult` is the result for one chunk. After all chunks, `torn` joins the suspects
that are parts of one record, or rejects them with a reason.
"""
