"""The oracle teacher's words: what a step says, in two styles of THOUGHT, and the filter that keeps them honest.

The oracle knows the chain; its words may not. `derive` writes the comparison that finds a chunk in the map,
`assert` only names the chunk, as the published teacher did.
"""

STYLES = ("derive", "assert")


def read_response(style: str, *, wanted: str, field: str, section: str, first: str, last: str, chunk: int) -> str:
    """READ a chunk for one field of one entity."""
    if style == "derive":
        where = f"{section}: {first} ≤ {wanted} ≤ {last}, chunk {chunk}."
    else:
        where = f"{section}: chunk {chunk}."
    return f"THOUGHT: need {field} of {wanted}. {where}\nACTION: READ {chunk}"


def compress_response(*, held: list[str], entity: str, field: str, value: str, following: str) -> str:
    """COMPRESS everything held into the one fact that leads on."""
    return f"THOUGHT: {entity} has {field} {value}. Next {following} of {value}.\nACTION: COMPRESS {' '.join(held)} :: {entity}: {field} = {value}"


def answer_response(*, entity: str, field: str, value: str) -> str:
    """ANSWER with the value of the last entity."""
    return f"THOUGHT: {entity} has {field} {value}.\nACTION: ANSWER {value}"


def template_texts() -> list[str]:
    """Every word the teacher may write besides names and fields, for a word-level tokenizer."""
    return ["THOUGHT need of chunk has Next ACTION READ COMPRESS DROP ANSWER unknown S"]
