"""Seeds of everything random in a rollout, derived from the run's seed so that a batch can be repeated."""

import hashlib


def derive(*parts: int | str) -> int:
    """A 31-bit seed from any path of numbers and names, such as (run seed, step, instance, episode, step index).

    31 bits because engines keep seeds in signed integers of 32 bits or more.
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
