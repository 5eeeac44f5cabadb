"""QMSum and QuALITY, counted again by a second, naive reader."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from stages.corpora import Loaded
from stages.text.article_text import article_text
from tests.support.command import QMSUM
from tests.support.texts.loading import loaded, written

# QuALITY's annotations state no licence: an article of our own in the same layout ships instead.
OUR_ARTICLE: dict[str, Any] = {
    "article_id": "7", "writer_id": "1016", "title": "The Mill", "year": 1964, "author": "us",
    "article": "<html><body><h1>The Mill</h1>" + "".join(
        f"<p>On day {day} the miller, with his <i>wheel</i> turned\nin the {wind} wind, as "
        "they had on every day before it, and nobody in the valley thought more of it.</p>"
        for day in range(40) for wind in ("north", "south")
    ) + "</body></html>",
    "questions": [
        {"question": f"Who turned on day {day}?", "question_unique_id": f"7_ABCDEFGH_{day}",
         "options": ["A", "The miller", "B", "C"], "gold_label": 2, "difficult": day % 2}
        for day in range(1, 9)
    ],
}  # fmt: skip
MEETINGS: list[dict[str, Any]] = [
    json.loads(line) for line in QMSUM.read_text(encoding="utf-8").split("\n") if line
]


def quality(folder: Path, *lines: dict[str, Any], name: str = "QuALITY.dev") -> list[Loaded]:
    return loaded(written(folder / name, *lines), "quality")


def naive_line(turn: dict[str, str]) -> str:
    parts = [part.strip() for part in re.split(r"[\r\n]", turn["content"])]
    return f"{turn['speaker'].strip()}: {' '.join(filter(None, parts))}"


def test_qmsum_val_words_paragraphs_and_gold_characters() -> None:
    corpus = loaded(QMSUM, "qmsum")
    questions = [question for item in corpus for question in item.questions]
    with_evidence = sum(bool(question.evidence) for question in questions)
    # Counted in the raw file by jq.
    assert (len(corpus), len(questions), with_evidence) == (8, 59, 51)
    num_gold_chars = 0
    for item, meeting in zip(corpus, MEETINGS, strict=True):
        lines = [naive_line(turn) for turn in meeting["meeting_transcripts"]]
        assert item.document.text.split("\n") == lines
        assert item.document.num_words == sum(len(line.split()) for line in lines)
        assert item.document.num_paragraphs == len(lines)
        for query in meeting["specific_query_list"]:
            for first, last in query["relevant_text_span"]:
                num_gold_chars += len("\n".join(lines[int(first) : int(last) + 1]))
    spans = [span for question in questions for span in question.evidence]
    assert sum(span.end_char - span.start_char for span in spans) == num_gold_chars > 200_000
    assert {question.question_type for question in questions} == {"general", "specific"}
    assert all(len(question.references) == 1 for question in questions)


def test_qmsum_a_meeting_a_file_is_the_same_corpus(tmp_path: Path) -> None:
    for number, meeting in enumerate(MEETINGS):
        text = json.dumps(meeting, indent=2, ensure_ascii=number % 2 == 0)
        (tmp_path / f"meeting_{number:02}.json").write_text(text, encoding="utf-8")
    assert loaded(tmp_path, "qmsum") == loaded(QMSUM, "qmsum")
    folder = tmp_path / "ALL"
    (folder / "val").mkdir(parents=True)
    written(folder / "val" / "covid_1.json", MEETINGS[0])
    written(folder / "test.jsonl", *MEETINGS[2:5])
    assert len(loaded(folder, "qmsum", split="val")) == 1
    assert len(loaded(folder, "qmsum", split="test")) == 3
    with pytest.raises(UsageError, match=r"no train or train\.jsonl or train\.json here"):
        loaded(folder, "qmsum", split="train")


def test_qmsum_tags_are_dropped_and_evidence_stays_on_its_turns() -> None:
    kept, cleaned = loaded(QMSUM, "qmsum"), loaded(QMSUM, "qmsum", clean="tags")
    for before, after in zip(kept, cleaned, strict=True):
        assert before.document.document_id == after.document.document_id
        assert before.document.num_paragraphs == after.document.num_paragraphs
        assert "{" not in after.document.text and "  " not in after.document.text
        assert turns_of_evidence(before) == turns_of_evidence(after)
    turns = (turn for meeting in MEETINGS for turn in meeting["meeting_transcripts"])
    tags = sum(len(re.findall(r"\{[^{}]*\}", turn["content"])) for turn in turns)
    num_words = [sum(item.document.num_words for item in corpus) for corpus in (kept, cleaned)]
    assert num_words[0] - num_words[1] == tags > 0


def turns_of_evidence(item: Loaded) -> list[tuple[str, list[tuple[int, int]]]]:
    """Of each question its id, and the first and last turn of each span."""
    text, questions = item.document.text, list[tuple[str, list[tuple[int, int]]]]()
    for question in item.questions:
        spans = [(span.start_char, span.end_char) for span in question.evidence]
        for start, end in spans:
            assert text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n")
        turns = [(text.count("\n", 0, start), text.count("\n", 0, end)) for start, end in spans]
        questions.append((question.question_id, turns))
    return questions


def naive_paragraphs(html: str) -> list[str]:
    """The <p> and headings of a page that have text, their tags out and wraps joined."""
    blocks = re.findall(r"<(p|h1|h2)\b[^>]*>(.*?)</\1>", html, re.DOTALL)
    texts = [" ".join(re.sub(r"<[^>]*>", "", inner).split()) for _, inner in blocks]
    return [text for text in texts if text]


def stripped(paragraphs: list[str]) -> str:
    """The paragraphs as the htmlstripped files write them: hard wraps, a space before each line."""
    wrapped = [re.sub(r"(.{40,70}?) ", "\\1\n ", text) for text in paragraphs]
    return "".join(f"\n\n\n {text}" for text in wrapped) + "\n\n"


def test_quality_record_has_its_questions_and_paragraphs_and_no_html(tmp_path: Path) -> None:
    [item] = quality(tmp_path, OUR_ARTICLE)
    document = item.document
    paragraphs = naive_paragraphs(OUR_ARTICLE["article"])
    assert document.text == "\n\n".join(paragraphs) and not re.search("[<>]", document.text)
    assert document.num_paragraphs == len(paragraphs) == 81
    assert document.num_words == sum(len(text.split()) for text in paragraphs)
    assert (document.document_id, document.title) == ("7", "The Mill")
    assert json.loads(document.metadata) == {"author": "us", "year": 1964}
    assert [q.question_id for q in item.questions] == [f"7_ABCDEFGH_{day}" for day in range(1, 9)]
    for day, question in enumerate(item.questions, 1):
        assert (question.answer_index, question.references) == (1, ("The miller",))
        assert json.loads(question.metadata)["difficult"] == day % 2


def test_quality_htmlstripped_gives_the_same_text(tmp_path: Path) -> None:
    plain = {**OUR_ARTICLE, "article": stripped(naive_paragraphs(OUR_ARTICLE["article"]))}
    assert plain["article"].count("\n ") > 200
    corpus = quality(tmp_path, plain, name="QuALITY.v1.0.1.htmlstripped.dev")
    assert corpus == quality(tmp_path, OUR_ARTICLE)


def test_quality_lines_of_an_article_become_one_document(tmp_path: Path) -> None:
    asked = OUR_ARTICLE["questions"]
    half = {**OUR_ARTICLE, "questions": asked[:4]}
    rest = {**OUR_ARTICLE, "questions": asked[4:], "writer_id": "7", "article": "<p>Other"}
    other = {**OUR_ARTICLE, "article_id": 5, "questions": []}
    first, second = quality(tmp_path, half, other, rest)
    [whole] = quality(tmp_path, OUR_ARTICLE)
    assert first.document == whole.document and second.document.document_id == "5"
    assert [q.question_id for q in first.questions] == [q.question_id for q in whole.questions]
    assert {json.loads(q.metadata)["writer_id"] for q in first.questions} == {"1016", "7"}


def test_article_text_neither_glues_nor_splits_words() -> None:
    texts = {
        "<p>one<br/>two<br>three<br/><br/>four</p>": "one\ntwo\nthree\n\nfour",
        "<p>un<i>believ</i>able &amp; caf&eacute; &#8220;x&#8221;</p>": "unbelievable & café “x”",
        "<html><head><title>T</title><style>p {}</style></head><p>a<script>b</script>": "a",
        "<p>1 < 2<!-- no --><!--[if IE]>old<![endif]--><![if x]> a<p>b": "1 < 2 a\n\nb",
        "<p>a <![CDATA[x]]> b</p><script><![CDATA[x]]></script>c": "a b\n\nc",
        "<pre>rose\n red</pre><table><tr><td>1</td><td>2</td></tr></table>": "rose\nred\n\n1 2",
        "\n one\n two\n\n\n three\n \n": "one two\n\nthree",
    }  # fmt: skip
    for html, text in texts.items():
        assert article_text(html if "<" not in html else f"<!DOCTYPE html>{html}") == text
