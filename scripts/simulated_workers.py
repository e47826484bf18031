"""Many Dask workers in one process, for `bench-scheduler`: they speak the protocol and little else.

    python simulated_workers.py ADDRESS COUNT

A `distributed.Worker` takes so much memory and CPU that a thousand of them keep several processors
busy without any task. These register, run a task as soon as it arrives, report that it is
finished, hand its result over, and send a heartbeat as often as the scheduler asks for. To the
scheduler they are like others: each has a connection of its own for messages, one for heartbeats
and an address for data, and what it sends has the size of what a worker sends.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import time
from contextlib import suppress
from typing import Any

import dask
from distributed import Worker
from distributed.comm import CommClosedError, connect, listen
from distributed.protocol import to_serialize
from distributed.sizeof import sizeof
from distributed.versions import get_versions

REGISTERED_AT_ONCE = 50
"""The scheduler answers each; too many at once would be refused."""


class SimulatedWorker:
    """A worker with one thread whose tasks take no time."""

    def __init__(self, scheduler: str, facts: dict[str, Any]) -> None:
        self.scheduler, self.facts = scheduler, facts
        self.results: dict[str, Any] = {}
        self.address = ""

    async def register(self) -> None:
        """Joins the cluster; its tasks then arrive in the background."""
        listener = await listen("tcp://127.0.0.1:0", self.hand_over)
        self.address = listener.contact_address
        self.messages = await connect(self.scheduler)
        self.heartbeats = await connect(self.scheduler)
        stated = {name: self.facts[name] for name in ("metrics", "versions", "extra")}
        await self.messages.write(
            stated
            | {
                "op": "register-worker",
                "reply": False,
                "address": self.address,
                "name": self.address,
                "server_id": self.address,
                "status": "running",
                "nthreads": 1,
                "memory_limit": 1 << 30,
                "local_directory": "",
                "services": {},
                "resources": {},
                "nanny": None,
                "pid": os.getpid(),
                "now": time.time(),
                "stimulus_id": "register",
            }
        )
        answer = await self.messages.read()
        self.background = (
            asyncio.create_task(self.run_tasks()),
            asyncio.create_task(self.send_heartbeats(answer["heartbeat-interval"])),
            listener,
        )

    async def run_tasks(self) -> None:
        """Answers the messages of the scheduler."""
        while True:
            arrived = await self.messages.read()
            for message in arrived if isinstance(arrived, tuple | list) else (arrived,):
                if message["op"] == "compute-task":
                    await self.messages.write([self.finished(message)])
                elif message["op"] == "free-keys":
                    for key in message["keys"]:
                        self.results.pop(key, None)

    def finished(self, message: dict[str, Any]) -> dict[str, Any]:
        """Runs a task, and returns the message that it is finished."""
        begin = time.time()
        result = message["run_spec"]()
        self.results[message["key"]] = result
        return {
            "op": "task-finished",
            "status": "OK",
            "key": message["key"],
            "run_id": message["run_id"],
            "nbytes": sizeof(result),
            "type": pickle.dumps(type(result)),
            "typename": "list",
            "metadata": {},
            "thread": 1,
            "startstops": [{"action": "compute", "start": begin, "stop": time.time()}],
            "stimulus_id": f"task-finished-{begin}",
        }

    async def send_heartbeats(self, every_s: float) -> None:
        """Sends a heartbeat as often as the scheduler asks for."""
        await asyncio.sleep(every_s * (hash(self.address) % 1000) / 1000)
        while True:
            await self.heartbeats.write(
                {
                    "op": "heartbeat_worker",
                    "reply": True,
                    "address": self.address,
                    "now": time.time(),
                    "metrics": self.facts["metrics"],
                    "executing": {},
                    "extensions": self.facts["extensions"],
                }
            )
            answer = await self.heartbeats.read()
            await asyncio.sleep(answer["heartbeat-interval"])

    async def hand_over(self, comm: Any) -> None:
        """Answers requests for results."""
        with suppress(CommClosedError):
            while True:
                message = await comm.read()
                if message["op"] == "get_data":
                    found = {key: to_serialize(self.results[key]) for key in message["keys"]}
                    await comm.write({"status": "OK", "data": found})
                    await comm.read()
                elif message.get("reply", True):
                    await comm.write({"status": "OK"})


async def facts_of_a_worker(scheduler: str) -> dict[str, Any]:
    """Returns what a real worker tells the scheduler about itself."""
    async with Worker(scheduler, nthreads=1, memory_limit=1 << 30, dashboard=False) as real:
        return {
            "metrics": await real.get_metrics(),
            "extra": await real.get_startup_information(),
            "versions": get_versions(),
            "extensions": {
                name: extension.heartbeat()
                for name, extension in real.extensions.items()
                if hasattr(extension, "heartbeat")
            },
        }


async def main(scheduler: str, count: int) -> None:
    """Starts the workers, which run until the process is killed."""
    import no_work

    no_work.row()
    facts = await facts_of_a_worker(scheduler)
    workers = [SimulatedWorker(scheduler, facts) for _ in range(count)]
    for begin in range(0, count, REGISTERED_AT_ONCE):
        some = workers[begin : begin + REGISTERED_AT_ONCE]
        await asyncio.gather(*(worker.register() for worker in some))
    print("ready", flush=True)
    await asyncio.gather(*(worker.background[0] for worker in workers))


if __name__ == "__main__":
    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}):
        asyncio.run(main(sys.argv[1], int(sys.argv[2])))
