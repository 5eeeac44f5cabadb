"""Words of replies in a family's language, by a family of German and Chinese words made here."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.prompts import Prompt
from pipeline.core.settings import CONF
from pipeline.families.family import Family, load_family
from stages.prompts.judging.rate_permissive import PermissiveRating
from stages.prompts.judging.verdicts import SAMPLE
from stages.prompts.longmemeval.extract_keyphrases import ExtractKeyphrases
from stages.prompts.longmemeval.note import NoteOnChat
from stages.prompts.longmemeval.time_range import TimeRange
from stages.prompts.memorag.clue_spans import ClueSpans
from stages.prompts.memorag.key_points import KeyPoints
from stages.prompts.memorag.sub_questions import SubQuestions
from stages.prompts.memwalker.read_leaf import ReadLeaf
from stages.prompts.readagent.answer import AnswerQuestion
from stages.prompts.readagent.look_up_p import ParallelLookUp
from stages.prompts.readagent.look_up_s import SequentialLookUp
from tests.support.reading import family, written_family

GERMAN = {
    "reply_words": {
        "rate_permissive": {
            "yes": ["Ja", "jawohl"], "no": ["Nein"], "partially": ["teilweise", "zum Teil"],
            "and": ["und"],
        },
        "look_up_s": {"page": ["Seite", "Seiten"], "stop": ["STOPP"]},
        "look_up_p": {"i want to look up": ["Ich möchte nachschlagen:"], "page": ["Seite"]},
        "answer": {"answer": ["Antwort"]},
        "read_leaf": {"action:": ["Aktion:"], "answer:": ["Antwort:"], "reasoning:": ["Grund:"]},
    },
    "forms": {"look_up_s": "Seite {}", "read_leaf": "Aktion: {}"},
    "refusals": {"look_up_p": {"negations": ["keine"], "needed": ["seite"]}},
}  # fmt: skip
CHINESE = {
    "reply_words": {
        "rate_permissive": {
            "yes": ["是"], "no": ["否", "不是"], "partially": ["部分正确"], "and": ["又"],
        },
        "look_up_s": {"page": ["第"], "": ["页"], "stop": ["停止"]},
        "look_up_p": {"page": ["第"], "": ["页"], ", ": ["、"]},
        "read_leaf": {"action:": ["动作："], "answer:": ["答案："], "reasoning:": ["理由："]},
    },
    "forms": {"look_up_s": "第{}页"},
}  # fmt: skip
RATING = PermissiveRating(*SAMPLE)
TURN, BOTH = SequentialLookUp.samples()[0], ParallelLookUp.samples()[0]
FREE = AnswerQuestion((), "Wer?", (), None)
NOTHING: dict[type[Prompt[Any]], object] = {
    **dict.fromkeys((ClueSpans, KeyPoints, SubQuestions, ExtractKeyphrases), ()),
    NoteOnChat: "", TimeRange: ("", ""),
}  # fmt: skip
LEAF = next(leaf for leaf in ReadLeaf.samples() if not leaf.options and leaf.reasoning is False)


def family_of(folder: Path, keys: dict[str, Any]) -> Family:
    return load_family(written_family(folder, **keys), [CONF / "prompts"])


@pytest.mark.parametrize(
    ("prompt", "reply", "value"),
    [
        (RATING, "Ja", "yes"),
        (RATING, "**Jawohl.**", "yes"),
        (RATING, "Yes", "yes"),
        (RATING, "Ja, zum Teil.", "partially"),
        (RATING, "Teilweise, der Grund fehlt.", "partially"),
        (RATING, "NEIN", "no"),
        (RATING, "Nein. Ja wäre falsch.", "no"),
        (RATING, "Ja und nein", None),
        (RATING, "Jagd", None),
        (TURN, "Seite 8", 8),
        (TURN, "STOPP", "stop"),
        (TURN, "Auf Seite 3 und Seite 7 steht etwas.", None),
        (TURN, "Stoppelfeld", None),
        (BOTH, "Ich möchte nachschlagen: Seite [6, 7]", (6, 7)),
        (BOTH, "Ich brauche keine weitere Seite.", ()),
        (BOTH, "Ich brauche keine weitere Seite als Seite 7.", (7,)),
        (LEAF, "Aktion: -2\nAntwort: Die Seite der Antwort", (-2, "Die Seite der Antwort")),
        (LEAF, "Aktion: -1", (-1,)),
        (LEAF, "**Aktion**: -2\n**Antwort**: die Glocke", (-2, "die Glocke")),
        (FREE, "Die Antwort: Seite 3, und STOPP.", "Die Antwort: Seite 3, und STOPP."),
    ],
)
def test_german(tmp_path: Path, prompt: Prompt[object], reply: str, value: object) -> None:
    assert family_of(tmp_path, GERMAN).read(prompt, reply, is_cut=False) == value


@pytest.mark.parametrize(
    ("prompt", "reply", "value"),
    [
        (RATING, "是", "yes"),
        (RATING, "否。答案说的是另一个人。", "no"),
        (RATING, "不是", "no"),
        (RATING, "部分正确，缺少原因。", "partially"),
        (RATING, "是又否", None),
        (TURN, "第8页", 8),
        (TURN, "**第 12 页**", 12),
        (TURN, "停止", "stop"),
        (TURN, "我不知道", None),
        (BOTH, "第3、5页", (3, 5)),
        (LEAF, "**动作：** -2\n**答案：** 页上有钟", (-2, "页上有钟")),
        (LEAF, "动作: -2\n答案: 第3页", (-2, "第3页")),
    ],
)
def test_chinese(tmp_path: Path, prompt: Prompt[object], reply: str, value: object) -> None:
    assert family_of(tmp_path, CHINESE).read(prompt, reply, is_cut=False) == value


def shipped(name: str) -> Family:
    return load_family(CONF / "prompts" / name, [CONF / "prompts"])


@pytest.mark.parametrize(
    ("reply", "page"),
    [
        ("第七页", 7),
        ("**第十二页**", 12),
        ("我想查阅第[三十]页，那里写到了信。", 30),
        ("第九十九页", 99),
        ("第二〇页", 20),
        ("第两页", 2),
        ("十一", 11),
        ("第三页的摘要提到了它，所以我想查阅第二十四页", 24),
        ("不需要第一页。我想查阅第 十 页。", 10),
        ("第一次提到信的是第五页。", 5),
        ("第三或第五页", None),
        ("第一二页", None),  # 12, or 1 and 2
        ("第一百零三页", None),
        ("信第一次出现是在结尾。", None),
    ],
)
def test_pages_in_chinese_numerals(reply: str, page: int | None) -> None:
    assert shipped("chinese").read(TURN, reply, is_cut=False) == page
    assert family().read(TURN, reply, is_cut=False) is None


@pytest.mark.parametrize(
    ("reply", "pages"),
    [
        ("我想查阅第[三、十二]页", (3, 12)),
        ("第三页和第五页应该有更多说明。", (3, 5)),
        ("我想查阅第二、〇、十页", (2, 0, 10)),
        ("第一部分讲了童年，我想查阅第[四]页", (4,)),
        ("五、六", (5, 6)),
        ("我想查阅第[三到六]页", None),
    ],
)
def test_lists_of_pages_in_chinese_numerals(reply: str, pages: tuple[int, ...] | None) -> None:
    assert shipped("chinese").read(BOTH, reply, is_cut=False) == pages


def test_every_numeral_to_99() -> None:
    units, chinese = ["", *"一二三四五六七八九"], shipped("chinese")
    tens = ["", "十", *(f"{unit}十" for unit in units[2:])]
    written = [ten + unit for ten in tens for unit in units]
    read = [chinese.read(TURN, f"第{text}页", is_cut=False) for text in written[1:]]
    assert read == [*range(1, 100)]


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("german", ["KEINE", "Keine.", "**keine**", "Nichts."]),
        ("chinese", ["没有。", "**没有线索**", "无"]),
    ],
)
def test_a_whole_reply_that_says_none(name: str, replies: list[str]) -> None:
    """Where such a word stands among others it is text of the reply's own."""
    own = shipped(name)
    for prompt, nothing in NOTHING.items():
        found = [own.read(prompt.samples()[0], reply, is_cut=False) for reply in replies]
        assert found == [nothing] * len(replies), prompt.name
    line = {"german": "Es gab keine zweite Glocke.", "chinese": "没有人承认敲过钟。"}[name]
    assert own.read(ClueSpans.samples()[0], f"{line}\nX", is_cut=False) == (line, "X")


@pytest.mark.parametrize("reply", ["Ja", "Seite 8", "是"])
def test_no_other_family_reads_them(reply: str) -> None:
    assert family().read(RATING, reply, is_cut=False) is None
    assert family().read(TURN, reply, is_cut=False) is None


def test_a_constrained_reply_is_in_the_familys_words(tmp_path: Path) -> None:
    german = family_of(tmp_path, GERMAN)
    verdicts, turn, leaf = (german.constraint(prompt) for prompt in (RATING, TURN, LEAF))
    assert verdicts is not None and turn is not None and leaf is not None
    assert verdicts.choices == ("Ja", "Ja, teilweise", "Nein")
    assert turn.choices[-1] == "STOPP" and turn.choices[0].startswith("Seite ")
    assert leaf.regex.startswith("Aktion: ") and "\\nAntwort: " in leaf.regex
    assert [german.read(RATING, choice, False) for choice in verdicts.choices] == [
        "yes", "partially", "no",
    ]  # fmt: skip
    assert None not in [german.read(TURN, choice, False) for choice in turn.choices]
    assert family().constraint(RATING) == RATING.legal("{}")
