"""From bytes to columns: how a line of GODEBUG=gctrace=1 output becomes a row of `cycles`.

A chunk of a log takes these steps, in this order:

1. `grammar` defines every line shape, each once, as a template.
2. `parse` finds the runtime's lines in the chunk and strips the log prefix of wrapped ones.
3. `skeletons` reads the lines whose punctuation matches a known shape: fast, no regex.
4. `patterns` reads the rest with each shape's regular expression.
5. `torn` joins records that were split over several lines, or rejects them with a reason.
6. `columns` turns the parsed fields into the columns of the tables in `schema.py`.

`chunk.ChunkResult` holds what one chunk yielded.
"""
