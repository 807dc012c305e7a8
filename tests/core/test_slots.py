"""Places that threads and event loops share."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from agentkit.slots import Slots


def test_threads_wait_their_turn() -> None:
    slots, order = Slots(1), list[int]()
    slots.take()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(slots.take)
        order.append(1)
        slots.release()
        waiting.result(5)
        order.append(2)
    assert order == [1, 2]


async def test_a_cancelled_wait_costs_no_place() -> None:
    slots = Slots(1)
    await slots.atake()
    waiting = asyncio.create_task(slots.atake())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    slots.release()
    await asyncio.wait_for(slots.atake(), 5)


async def test_a_place_that_is_granted_while_the_wait_is_cancelled_is_given_back() -> None:
    slots = Slots(1)
    await slots.atake()
    waiting = asyncio.create_task(slots.atake())
    await asyncio.sleep(0)
    slots.release()  # granted, but the task has not run since
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(slots.atake(), 5)


async def test_a_thread_frees_a_place_for_a_task() -> None:
    slots = Slots(1)
    slots.take()
    waiting = asyncio.create_task(slots.atake())
    await asyncio.sleep(0)
    threading.Thread(target=slots.release).start()
    await asyncio.wait_for(waiting, 5)
