"""One launch, run with unknown data: warps, memory, barriers, asynchronous engines' queues."""
