"""Reads from a Prometheus server, or from a store with the same HTTP API.

address      the base address of the API, without secrets
credentials  what is sent to prove who asks; never shown
connection   one request over HTTP: timeouts, bounded answers, proxies, certificates
problems     what an error answer means, and what to do about it
server       queries, one at a time; waits when the server asks for it
selector     label matchers in PromQL
names        the metrics that are fetched
discovery    which Go processes the server knows
samples      raw samples, in pieces of bounded size
recording    the answers as one compressed file, as it is read and saved
access       what is asked, and how it is reached: the options of `read`
read         which processes there are, and their samples as a file that `read` takes
queries      figures of many processes, computed by the server
"""
