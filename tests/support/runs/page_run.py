"""A finished run for tests of its page: a walk, clues, look-ups and pages."""

from pathlib import Path
from typing import Any

from tests.support.command import succeed
from tests.support.texts.small_corpus import write

PEOPLE = ("the sexton", "a carpenter", "the miller", "Anna's aunt", "a ferryman", "the notary")
THINGS = ("the bell", "the mill wheel", "the ledger", "the green door", "the ferry", "the clock")


def text(number: int) -> str:
    """Twelve paragraphs of some thirty words, each about a person, a thing and a month."""
    return "\n\n".join(
        f"In month {month} of year {1900 + number}, {PEOPLE[(month + number) % 6]} repaired "
        f"{THINGS[month % 6]} of village {number}. It had been broken since the flood came over "
        f"the meadows, and nobody else in the valley could mend it for less than {month + 3} coins."
        for month in range(12)
    )


def questions(number: int) -> list[dict[str, Any]]:
    """A free-form question and one of multiple choice about a document, both with evidence."""
    found = []
    for month, options in ((3, []), (7, [*PEOPLE])):
        wanted = f"In month {month} of year {1900 + number}, {PEOPLE[(month + number) % 6]}"
        start = text(number).index(wanted)
        right = (month + number) % 6
        found.append({
            "document_id": f"village-{number}", "question_id": f"v{number}-m{month}",
            "question_type": "who" if options else "what",
            "question": f"Who repaired {THINGS[month % 6]} in month {month} of the year?",
            "references": [] if options else [PEOPLE[right]],
            "options": options, "answer_index": right if options else None,
            "evidence": [{"start_char": start, "end_char": start + len(wanted)}],
        })  # fmt: skip
    return found


def write_corpus(folder: Path, num_documents: int) -> None:
    numbers = range(num_documents)
    documents = [
        {"document_id": f"village-{n}", "title": f"Village {n}", "text": text(n)} for n in numbers
    ]
    write(folder, documents, [question for n in numbers for question in questions(n)])


def finished(folder: Path, *words: str, methods: str) -> Path:
    """The warehouse of a finished run of the corpus in `folder`."""
    warehouse = folder / "warehouse"
    succeed(
        "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", f"methods={methods}",
        "memory=uniform", "memory.words=60", "run=night", f"warehouse={warehouse}",
        "cluster=inline", *words,
    )  # fmt: skip
    return warehouse
