"""A corpus, prompts and scripts so small that a whole run can be worked by hand
(runs/test_scripted_*.py). The comments count words, which are the scripted engine's tokens."""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

METHODS = "gist_only,readagent_p(max_pages=2),bm25(top_k=1),full_text,closed_book,constant"

# Six paragraphs of 10 words: 60. Windows hold three of them (30 words), labels follow each.
MILL = (
    "The old mill stands by the river below the village.",
    "Anna bought it in spring with money from her aunt.",
    "In May the great flood came and broke the wheel.",
    "Nobody in the village could mend so large a wheel.",
    "A carpenter called Peter walked over from the next valley.",
    "By harvest the mill ground corn again for everybody there.",
)
# 24 and 8 words: 32. They do not fit one window of 30, so the first is a page by rule.
TIDE = (
    "The lighthouse keeper counts every ship that passes the cape at night, and he writes their "
    "names into a thick green book each morning.",
    "In winter he counts only gulls and waves.",
)
# Five paragraphs of 30 words: 150, five pages by rule.
LEDGER = tuple(
    f"Entry {number} of the ledger is about {good}: how much of it came, on which ship, from which "
    "town, at what price, and who paid for all of it then."
    for number, good in enumerate(("wool", "corn", "iron", "salt", "wine"), 1)
)
TEXTS = {name: "\n\n".join(parts) for name, parts in
         (("mill", MILL), ("tide", TIDE), ("ledger", LEDGER))}  # fmt: skip


def span(document: str, words: str) -> dict[str, int]:
    """Where `words` stand in a document's text."""
    start = TEXTS[document].index(words)
    return {"start_char": start, "end_char": start + len(words)}


DOCUMENTS: list[dict[str, Any]] = [
    *({"document_id": name, "text": text} for name, text in TEXTS.items()),
    {"document_id": "blank", "text": " "},  # bad_input
]
QUESTIONS: list[dict[str, Any]] = [
    {"document_id": "mill", "question_id": "m1", "question_type": "why",
     "question": "What broke the wheel?",  # 4 words
     "references": ["The great flood in May broke it."],
     "evidence": [span("mill", "the great flood")]},
    {"document_id": "mill", "question_id": "m2", "question_type": "two_places",
     "question": "Who mended the mill and where did it stand?",  # 9
     "references": ["Peter mended it by the river.", "A carpenter from the next valley."],
     # 12 characters on page 0, 24 on page 1
     "evidence": [span("mill", "The old mill"), span("mill", "A carpenter called Peter")]},
    {"document_id": "tide", "question_id": "t1", "question_type": "detail",
     "question": "What does he count in winter?",  # 6, and 6 of the options
     "options": ["Ships", "Stars", "Gulls and waves", "Books"], "answer_index": 2,
     "evidence": [span("tide", "gulls and waves")]},
    {"document_id": "tide", "question_id": "x1", "question": "Is this row right?",  # bad_input
     "options": ["Yes", "No"], "answer_index": 9},
    {"document_id": "ledger", "question_id": "l1", "question_type": "detail",
     "question": "How many entries are there?",  # 5, and 3 of the options
     "options": ["Four", "Five", "Six"], "answer_index": 1},
    {"document_id": "ledger", "question_id": "l2", "question_type": "why",
     "question": "Which entry is about salt?",  # 5
     "references": ["Entry four."], "evidence": [span("ledger", "salt")]},
    {"document_id": "blank", "question_id": "b1",  # upstream; no question_type
     "question": "What is on the page?", "references": ["Nothing."]},
]  # fmt: skip

_PASSAGES = (
    "{% for p in passages %}[{{ p.kind }}{{ p.page_number if p.page_number is not none }}] "
    "{{ p.text }}\n{% endfor %}"
)
_ASKED = "{{ question }}{% for option in options %} {{ option }}{% endfor %}"
TEMPLATES = {
    "break_point": "CUT {% for p in paragraphs %}{{ p.text }} <{{ p.label }}> {% endfor %}",
    "gist": "SHORTEN {{ page }}",
    "look_up_p": _ASKED + " LOOK UP {{ max_pages }} FROM " + _PASSAGES,
    "look_up_s": "not asked by any method here",
    "answer": _ASKED + " ANSWER FROM " + _PASSAGES,
    "rate_strict": "{{ question }} SAID {{ answer }} KEY {{ reference }}",
    "rate_permissive": "{{ question }} SAID {{ answer }} KEY {{ reference }}",
}
FAMILY = {
    "wording": "ours",
    "settings": {
        "first_page": 1,  # so page numbers in prompts are not page indexes
        "min_words": 10, "max_words": 30, "tail_words": 12, "preceding_words": 0, "words": 30,
        "answer_each_look_up": False,
        "answer_words": 5,
        "constant_answer": "Nothing is known.",
        "metrics": ["rouge1_stem", "squad_em"],
    },
    "judging": {"rate": {}, "score": {}},
    "reply_tokens": {
        "break_point": 10, "gist": 20, "look_up_p": 10, "look_up_s": 10, "answer": 20,
        "rate_strict": 10, "rate_permissive": 10,
    },
}  # fmt: skip
# The longest full text of the mill: 9 + 2 + 1 + 60 = 72 words and 20 for the answer fit. That of
# the ledger, 150 words, does not. Nor do two raw pages of it: see m2 and l2 of readagent_p.
CONTEXT_TOKENS = 95


def _answer(question: str, context: str, reply: str, finish_reason: str = "stop") -> dict[str, Any]:
    match = rf"^{question}.* ANSWER FROM {context}"
    return {"prompt": "answer", "match": match, "reply": reply, "finish_reason": finish_reason}


READER: list[dict[str, Any]] = [
    {"prompt": "break_point", "match": "^CUT The old mill", "reply": "Break point: <2>"},
    {"prompt": "break_point", "reply": "There is none."},  # falls back to <5>
    {"prompt": "gist", "match": "The old mill", "reply": "Anna buys a mill."},  # 4 words
    {"prompt": "gist", "match": "In May", "reply": "A flood breaks the wheel;",  # 5
     "finish_reason": "length"},
    {"prompt": "gist", "match": "By harvest", "reply": "It grinds again."},  # 3
    {"prompt": "gist", "match": "lighthouse", "reply": "Keeper counts passing ships."},  # 4
    {"prompt": "gist", "match": "In winter", "reply": "Gulls in winter instead."},  # 4
    *({"prompt": "gist", "match": f"Entry {n} ", "reply": f"Entry {n}."}  # 2
      for n in range(1, 6)),
    {"prompt": "look_up_p", "match": "^What broke", "reply": "Look up Page [2]"},
    {"prompt": "look_up_p", "match": "^Who mended", "reply": "Look up Page [3, 1, 3, 9, 2]"},
    {"prompt": "look_up_p", "match": "^What does", "reply": "Look up Page [1]"},
    {"prompt": "look_up_p", "match": "^How many", "reply": "Look up Page [2-4]"},  # unparseable
    {"prompt": "look_up_p", "match": "^Which entry", "reply": "Look up Page [4, 5]"},
    # gist_only, and readagent_p where it read nothing: methods are told apart by their context
    _answer("What broke", r"\[gist1\].*\[gist2\]", "The great flood."),
    _answer("Who mended", r"\[gist1\]", "Peter, a carpenter."),
    _answer("What does", r"\[gist1\]", "Answer: (C)"),
    _answer("How many", r"\[gist1\]", "Answer: (B)"),
    _answer("Which entry", r"\[gist1\].*\[gist4\]", "Entry four, on salt."),
    # readagent_p
    _answer("What broke", r"\[gist1\].*\[page2\]", "Flood water.", "length"),  # truncated
    _answer("Who mended", r"\[page1\].*\[gist2\].*\[page3\]", "Peter by the river."),
    _answer("What does", r"\[page1\].*\[gist2\]", "Answer: (F)"),  # out_of_range
    _answer("Which entry", r"\[gist1\].*\[page4\]", "Entry four."),
    # bm25
    _answer("What broke", r"\[page2\]", "The flood."),
    _answer("Who mended", r"\[page1\]", "By the river."),
    _answer("What does", r"\[page2\]", "C"),
    _answer("How many", r"\[page1\]", "Answer: (A)"),
    _answer("Which entry", r"\[page4\]", "Salt stands in it."),
    # full_text; the ledger's are never asked
    _answer("What broke", r"\[text\]", "A flood broke it."),
    _answer("Who mended", r"\[text\]", "Peter."),
    _answer("What does", r"\[text\]", "Answer: (C)"),
    # closed_book
    _answer("What broke", "$", "I do not know."),
    _answer("Who mended", "$", "A carpenter from the next valley."),
    _answer("What does", "$", "Perhaps the second."),  # unparseable
    _answer("How many", "$", "", "abort"),  # engine_failed
    _answer("Which entry", "$", ""),  # unparseable too
]  # fmt: skip


def _rate(prompt: str, answer: str, reply: str, reference: str = "") -> dict[str, Any]:
    match = f"SAID {answer} KEY {reference}"
    return {"prompt": f"rate_{prompt}", "match": match, "reply": reply}


TEACHER: list[dict[str, Any]] = [
    _rate("strict", "The great flood.", "YES"),
    _rate("permissive", "The great flood.", "Yes"),
    _rate("strict", "Peter, a carpenter.", "Maybe", "Peter"),  # unscored, but the other is exact
    _rate("strict", "Peter, a carpenter.", "YES", "A carpenter"),
    _rate("permissive", "Entry four, on salt.", "Yes, partially"),
    _rate("strict", "Peter by the river.", "It depends.", "Peter"),  # unscored beats partial
    _rate("permissive", "Peter by the river.", "Yes, partially", "A carpenter"),
    _rate("permissive", "Entry four.", "Yes"),  # exact, though strict says NO
    _rate("permissive", "By the river.", "Yes, partially", "Peter"),
    _rate("strict", "Salt stands in it.", "YES"),
    _rate("permissive", "Salt stands in it.", "Hm."),  # exact, though the other cannot be read
    _rate("strict", "A flood broke it.", "YES"),
    _rate("strict", "A carpenter from the next valley.", "YES", "A carpenter"),
    {"prompt": "rate_strict", "reply": "NO"},
    {"prompt": "rate_permissive", "reply": "No"},
]
GENEROUS: list[dict[str, Any]] = [
    {"prompt": "rate_strict", "reply": "NO"},
    {"prompt": "rate_permissive", "match": r"SAID ((?!KEY).)*flood", "reply": "Yes"},
    {"prompt": "rate_permissive", "reply": "Yes, partially"},
]


class HandRun:
    """The files of the run in a folder of their own, and the words that start it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.code, self.out, self.err = 0, "", ""  # what the command came to
        self.words = [
            "run", "corpus=tables", f"corpus.path={folder / 'corpus'}", "run=hand",
            f"warehouse={self.warehouse}", f"methods={METHODS}", f"family={folder / 'hand'}",
            "engine=scripted", f"engine.script={folder / 'reader.yaml'}",
            f"engine.context_tokens={CONTEXT_TOKENS}",
            "rater=scripted", f"rater.script={folder / 'teacher.yaml'}",
        ]  # fmt: skip

    def copied(self, folder: Path) -> list[str]:
        """The words for the same run in a copy of its warehouse."""
        shutil.copytree(self.warehouse, folder / "warehouse")
        own = f"warehouse={self.warehouse}"
        return [word if word != own else f"warehouse={folder / 'warehouse'}" for word in self.words]

    def write(self) -> None:
        """Corpus, prompts and scripts."""
        for name, rows in (("documents", DOCUMENTS), ("questions", QUESTIONS)):
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            _write(self.folder / "corpus" / f"{name}.jsonl", lines)
        for prompt, template in TEMPLATES.items():
            _write(self.folder / "hand" / f"{prompt}.jinja", template)
        _write(self.folder / "hand" / "family.yaml", yaml.safe_dump(FAMILY))
        for name, rules in (("reader", READER), ("teacher", TEACHER), ("generous", GENEROUS)):
            _write(self.folder / f"{name}.yaml", yaml.safe_dump({"replies": rules}))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
