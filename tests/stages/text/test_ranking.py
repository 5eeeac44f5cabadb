"""Terms of every script, as a person would cut words; ranks by BM25, and centrality; and what rests
on them: gists and excerpts of whole sentences."""

import math
import os
import re
import subprocess
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25

from stages.text.excerpts import best_clauses, best_sentences, gist
from stages.text.ranking import Ranking, centrality, rank, ranking, relevance, terms
from stages.text.words import num_words
from tests.support.command import ROOT

# A page, its words as a person would cut them, a question that only it answers, and another page.
LANGUAGES = {
    "turkish": ("İstanbul'da yaşlı balıkçı ağını onardı.",
        "istanbul da yaşlı balıkçı ağını onardı", "istanbul balıkçısı, yaşlı",
        "Yağmur bütün gece çatıyı dövdü."),
    "yoruba": ("Ọkùnrin náà ta ọkọ̀ rẹ̀.", "ọkùnrin náà ta ọkọ̀ rẹ̀", "ọkọ̀ náà?",
        "Òjò rọ̀ ní gbogbo òru."),
    "russian": ("Старый сторож продал за́мок вдове.", "старый сторож продал замок вдове",
        "Кто продал замок?", "Дождь шёл всю ночь за окном."),
    "hebrew": ("הַשּׁוֹמֵר מָכַר אֶת הַבַּיִת לָאַלְמָנָה.", "השומר מכר את הבית לאלמנה",
        "מי מכר את הבית?", "הגשם ירד כל הלילה על הגג."),
    "persian": ("نگهبان می‌خندید و فانوس را فروخت.", "نگهبان میخندید و فانوس را فروخت",
        "چه کسی میخندید؟", "باران تمام شب بارید و باد آمد."),
    "hindi": ("बूढ़े पहरेदार ने दीपघर बेचा।", "बूढ़े पहरेदार ने दीपघर बेचा", "दीपघर किसने बेचा?",
        "रात भर बारिश होती रही।"),
    "korean": ("등대지기는 2024년 등대를 팔았다.", "등대지기는 2024 년 등대를 팔았다",
        "누가 등대를 팔았나?", "밤새 비가 내렸다."),
    "tibetan": ("སྲུང་མས་ཁང་པ་བཙོངས།", "སྲུང མས ཁང པ བཙོངས", "ཁང་པ་སུས་བཙོངས།",
        "མཚན་མོ་ཆར་པ་བབས།"),
    "chinese": ("看守人把灯塔卖了。", "看 守 人 把 灯 塔 卖 了", "谁卖了灯塔？", "整夜下雨。"),
    "japanese": ("灯台守は灯台を売った。", "灯 台 守 は 灯 台 を 売 っ た",
        "誰が灯台を売ったか", "一晩中雨が降った。"),
    "thai": ("ยามขายบ้าน 3 หลัง", "ยามขายบ าน 3 หล ง", "ใครขายบ้าน", "ฝนตกตลอดคืน"),
}  # fmt: skip
RAIN = "今天早上下了很大的雨。他走路去了学校。老师还没有来。"
# English words are stems without stop words, and marks part the words of Thai.
TERMS: dict[str, list[str]] = {
    "The Batteries of the remote-controls": ["batteri", "remot", "control"],
    "fire man mill world home found": ["fire", "man", "mill", "world", "home", "found"],
    "I don't think it's his, isn't it?": ["think"],
    "!?! {} --": [],
    "3ème km² 1º word⁴": ["3ème", "km", "1º", "word", "⁴"],
    "COVID-19 in 2024, a 3rd_time": ["covid", "19", "2024", "3rd", "time"],
    "“Curly” couldn’t — O’Brien’s": ["curli", "o", "brien"],
    "iPhone手机 2024年 KBS는 ＡＢＣ": ["iphon", "手", "机", "2024", "年", "kb", "는", "ａｂｃ"],
    "Ⅳ世 ①②": ["ⅳ", "世", "①②"],
    "ภาษาไทย ปี2024": ["ภาษาไทย", "ป", "2024"],
    "ខ្មែរ\u200bខ្មែរ": ["ខ", "ម", "រ", "ខ", "ម", "រ"],
}
# Two ways to write the same words: ligatures of a PDF, forms of letters, dots, points, strokes.
SAME = [
    ("The oﬃce of the ﬂagship was ﬁrst", "The office of the flagship was first"),
    ("Moſt ĳs and 5 \u00b5m", "Most ijs and 5 \u03bcm"),
    ("light\u00adhouse, light\u200bhouse, light\u2060house", "lighthouse, lighthouse, lighthouse"),
    ("\ufeffZoe\u0308 \u202acafe\u0301\u202c", "Zoë café"),
    ("İSTANBUL", "istanbul"),
    ("мʼята, Hawai\u02bbi", "м'ята, Hawai'i"),
    ("ﻛﺘﺎﺏ كتــاب كِتَاب", "كتاب كتاب كتاب"),
    ("שָׁלוֹם בְּרֵאשִׁית", "שלום בראשית"),
    ("за\u0301мок и\u0306од", "замок йод"),
    ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_of_a_language(language: str) -> None:
    """Terms are stems by the rules of English, in any language: but for its end, each is a word.
    Letters may be stored apart, and words hyphenated."""
    page, cut, question, other = LANGUAGES[language]
    words = unicodedata.normalize("NFC", cut).split()
    assert len(terms(page)) == len(words)
    assert all(word.startswith(term[:-1]) for term, word in zip(terms(page), words, strict=True))
    assert rank([other, page], question) == [1, 0]
    assert relevance([other, page], question)[1] > 0
    assert terms(unicodedata.normalize("NFD", page)) == terms(page)
    if language != "thai":
        for none in "\u00ad\u200b\u200d\ufeff":
            assert terms(re.sub(r"(?<=\w)(?=\w)", none, page)) == terms(page)


def test_terms_of_a_text_and_words_that_are_written_in_two_ways() -> None:
    assert {text: list(terms(text)) for text in TERMS} == TERMS
    assert [(text, common) for text, common in SAME if terms(text) != terms(common)] == []


def test_the_best_text_comes_first_and_ties_stay_in_order() -> None:
    ships = ["a ship at sea", "a whale, a whale", "the whale and the ship at sea on a Monday"]
    cases: list[tuple[list[str], str, list[int]]] = [
        (ships, "Where is the whale?", [1, 2, 0]),
        *((["whale", "ship", "whale"], none, [0, 1, 2]) for none in ("", "the", "zebra", "!")),
        ([], "whale", []), (["", "the", ""], "whale", [0, 1, 2]),
        (["", "the whale", ""], "whale", [1, 0, 2]),
    ]  # fmt: skip
    assert [rank(texts, query) for texts, query, _ in cases] == [order for *_, order in cases]


def test_central_is_what_the_others_speak_of() -> None:
    scores = centrality(["whale ship harpoon", "whale ship", "biscuit"]).tolist()
    assert scores == sorted(scores, reverse=True) and scores[0] == 1
    assert centrality([]).tolist() == [] and centrality(["", "the"]).tolist() == [0, 0]


def test_okapi_by_hand() -> None:
    """Of four texts one has `whale`: idf log(3.5 / 1.5); two have `a`: idf 0; `the` three times is
    less than nothing in Okapi, and a quarter of the mean idf in rank_bm25."""
    texts = ["The whale the", "a ship the", "A Whale! the", "sea"]
    orders = {"WHALE": [0, 1, 2, 3], "a": [0, 1, 2, 3], "sea": [3, 0, 1, 2], "whale!": [2, 0, 1, 3]}
    for query, order in orders.items():
        assert [index for index, _ in ranking("okapi_on_words", texts, query)] == order, query
    # 3 words, 2.5 on average: k1 times (1 - b) + b * 3 / 2.5, with k1 1.5 and b 0.75.
    score = math.log(3.5 / 1.5) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 3 / 2.5))
    assert ranking("okapi_on_words", texts, "whale") == [
        (0, pytest.approx(score)), (1, 0), (2, 0), (3, 0),
    ]  # fmt: skip
    pages = ["gulls", "ropes", "Zoe\u0308 sold the ca\u00adfe\u0301"]
    assert ranking("okapi_on_words", pages, "CAFÉ")[0][0] == 2


def test_the_order_does_not_hang_on_the_hash_seed() -> None:
    program = """from stages.text.excerpts import gist, best_sentences
said = [f'The w{i % 7} met x{i % 5} near y{i % 11} on day z{i}.' for i in range(60)]
text = ' '.join(said)
print(gist(text), best_sentences([text], 'Where did w3 meet y5?', 40))"""
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    command = [sys.executable, "-c", program]
    outputs = {subprocess.check_output(command, env=env, cwd=ROOT) for env in environments}
    assert len(outputs) == 1


@pytest.mark.parametrize("bm25", ["plus_on_stems", "okapi_on_words", "okapi_on_spaces"])
def test_threads_that_ask_at_once_get_one_index(
    bm25: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread has its own copies of the pages, as each method has."""
    init, built = BM25.__init__, list[int]()

    def slow(self: BM25, corpus: list[list[str]], *args: object) -> None:
        built.append(len(corpus))
        time.sleep(0.05)  # a second thread comes while the first builds
        init(self, corpus, *args)

    monkeypatch.setattr(BM25, "__init__", slow)
    queries = ["bell", "rope", "bell", "mill"]
    with ThreadPoolExecutor(len(queries)) as threads:
        pages = [[f"{bm25} {word} {n}" for n, word in enumerate(queries)] for _ in queries]
        rankings = list(threads.map(partial(ranking, bm25), pages, queries))
    assert built == [4] and rankings[0] == rankings[2] == ranking(bm25, pages[0], "bell")


def words(count: int) -> str:
    return " ".join(f"word{i % 90}" for i in range(count))


def test_gists_of_short_and_of_odd_pages() -> None:
    """A short page comes whole, without tags."""
    whole = {
        "": "", "{vocalsound} {disfmarker}": "", words(59): words(59),
        "A: Yes {gap} I  do .\nB: No.": "A: Yes I do . B: No.",
    }  # fmt: skip
    assert {page: gist(page) for page in whole} == whole
    for page in (words(400), RAIN * 20, "Yeah. " * 300):
        assert 40 <= num_words(gist(page)) <= 110


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 250), min_size=1, max_size=40))
def test_no_long_page_is_told_by_its_beginning(lengths: list[int]) -> None:
    page = " ".join(" ".join(f"w{i}x{j}" for j in range(n)) + "." for i, n in enumerate(lengths))
    if num_words(page) >= 200:
        assert 40 <= num_words(gist(page)) <= 110
        assert not page.startswith(gist(page))


def test_a_long_sentence_is_cut_to_its_clauses() -> None:
    sentence = "In the spring, when it rained, the whale hit the ship, and all went home, at last."
    assert best_clauses(sentence, "Which whale hit the ship?", 6) == "the whale hit the ship"
    assert best_clauses(words(50), "word3", 5) == words(5)
    assert best_clauses("Short.", "Which whale hit the ship?", 5) == "Short."


def test_a_sentence_is_not_said_twice_in_an_answer() -> None:
    text = "The whale hit the ship with all of the strength that it had left. "
    assert best_sentences([text, text * 3], "Which whale?", 72) == text.strip()
