import pytest

from env.navigator.generate import instances
from env.navigator.instance import from_row
from env.navigator.settings import get_profile


@pytest.fixture(scope="session")
def laptop():
    """Twenty valid laptop instances of two and three hops."""
    return list(instances(get_profile("laptop"), "dev", 0, 20))


@pytest.fixture(scope="session")
def deep():
    """Ten valid laptop instances of four and five hops."""
    return list(instances(get_profile("laptop"), "ood_test", 0, 10))


@pytest.fixture(scope="session")
def public():
    """Two v1 instances."""
    return list(instances(get_profile("v1"), "id_test", 0, 2))


@pytest.fixture(scope="session")
def many():
    """Three hundred laptop instances of two to five hops, and six of v1."""
    counts = (("laptop", "dev", 200), ("laptop", "ood_test", 100), ("v1", "id_test", 3), ("v1", "ood_test", 3))
    return [instance for profile, split, n in counts for instance in instances(get_profile(profile), split, 0, n)]


@pytest.fixture
def small():
    """A hand-made instance without evidence: four chunks of 342, 368, 120 and 50 tokens, answer 4,885,866."""
    texts = ["Alder — Lead: Ada Lind.", "Birch — Lead: Bo Roe.", "Cedar — Lead: Cy Fox.", "Dogwood — Lead: Di Ash."]
    chunks = [
        {"idx": i, "section": "S", "header": "S", "kind": "register", "text": text, "tokens": tokens, "entity_names": [text.split()[0]]}
        for i, (text, tokens) in enumerate(zip(texts, [342, 368, 120, 50], strict=True))
    ]
    return from_row(
        {
            "id": "small",
            "seed": 0,
            "split": "cases",
            "n_hops": 2,
            "doc_tokens_target": 1000,
            "doc_tokens": 880,
            "question": "?",
            "answer": "4,885,866",
            "answer_type": "Budget",
            "answer_entity_type": "project",
            "chunks": chunks,
            "evidence": [],
            "distractors": [],
            "candidate_answers": [],
            "min_reads": 2,
            "min_steps": 4,
            "compression_required": True,
        }
    )
