"""Terms of every script: words as a person would cut them, however their letters are stored."""

import re
import unicodedata

import pytest

from stages.text.ranking import rank, relevance, relevance_by_words, terms

# A page, its words as a person would cut them, a question that only it answers, and another page.
LANGUAGES = {
    "french": (
        "L'âne gris vit sur une île près du phare.",
        "l âne gris vit sur une île près du phare",
        "Où est l'âne ?",
        "Le vent ne cesse pas et la mer gronde.",
    ),
    "turkish": (
        "İstanbul'da yaşlı balıkçı ağını onardı.",
        "istanbul da yaşlı balıkçı ağını onardı",
        "istanbul balıkçısı, yaşlı",
        "Yağmur bütün gece çatıyı dövdü.",
    ),
    "vietnamese": (
        "Ông lão bán chiếc thuyền cho người lạ.",
        "ông lão bán chiếc thuyền cho người lạ",
        "Ai bán thuyền?",
        "Mưa rơi suốt đêm trên mái nhà.",
    ),
    "yoruba": (
        "Ọkùnrin náà ta ọkọ̀ rẹ̀.",
        "ọkùnrin náà ta ọkọ̀ rẹ̀",
        "ọkọ̀ náà?",
        "Òjò rọ̀ ní gbogbo òru.",
    ),
    "russian": (
        "Старый сторож продал за́мок вдове.",
        "старый сторож продал замок вдове",
        "Кто продал замок?",
        "Дождь шёл всю ночь за окном.",
    ),
    "greek": (
        "Ο φύλακας πούλησε τον φάρο στη χήρα.",
        "ο φύλακας πούλησε τον φάρο στη χήρα",
        "ΠΟΎΛΗΣΕ ΤΟΝ ΦΆΡΟ;",
        "Ο άνεμος φυσούσε όλη τη νύχτα.",
    ),
    "hebrew": (
        "הַשּׁוֹמֵר מָכַר אֶת הַבַּיִת לָאַלְמָנָה.",
        "השומר מכר את הבית לאלמנה",
        "מי מכר את הבית?",
        "הגשם ירד כל הלילה על הגג.",
    ),
    "arabic": (
        "باعَ الحارسُ المنارةَ للأرملة.",
        "باع الحارس المنارة للأرملة",
        "من باع المنارة؟",
        "هطل المطر طوال الليل.",
    ),
    "persian": (
        "نگهبان می‌خندید و فانوس را فروخت.",
        "نگهبان میخندید و فانوس را فروخت",
        "چه کسی میخندید؟",
        "باران تمام شب بارید و باد آمد.",
    ),
    "hindi": (
        "बूढ़े पहरेदार ने दीपघर बेचा।",
        "बूढ़े पहरेदार ने दीपघर बेचा",
        "दीपघर किसने बेचा?",
        "रात भर बारिश होती रही।",
    ),
    "korean": (
        "등대지기는 2024년 등대를 팔았다.",
        "등대지기는 2024 년 등대를 팔았다",
        "누가 등대를 팔았나?",
        "밤새 비가 내렸다.",
    ),
    "tibetan": (
        "སྲུང་མས་ཁང་པ་བཙོངས།",
        "སྲུང མས ཁང པ བཙོངས",
        "ཁང་པ་སུས་བཙོངས།",
        "མཚན་མོ་ཆར་པ་བབས།",
    ),
    "chinese": (
        "看守人把灯塔卖了。",
        "看 守 人 把 灯 塔 卖 了",
        "谁卖了灯塔？",
        "整夜下雨。",
    ),
    "japanese": (
        "灯台守は灯台を売った。",
        "灯 台 守 は 灯 台 を 売 っ た",
        "誰が灯台を売ったか",
        "一晩中雨が降った。",
    ),
    "thai": (
        "ยามขายบ้าน 3 หลัง",
        "ยามขายบ าน 3 หล ง",
        "ใครขายบ้าน",
        "ฝนตกตลอดคืน",
    ),
}  # fmt: skip
# As they always were: English words are stems, and marks part the words of Thai.
UNCHANGED = {
    "COVID-19 in 2024, a 3rd_time": ["covid", "19", "2024", "3rd", "time"],
    "“Curly” couldn’t — O’Brien’s": ["curli", "o", "brien"],
    "iPhone手机 2024年 KBS는 ＡＢＣ１２": [
        "iphon",
        "手",
        "机",
        "2024",
        "年",
        "kb",
        "는",
        "ａｂｃ１２",
    ],
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


@pytest.mark.parametrize(("page", "cut", "question", "other"), LANGUAGES.values(), ids=LANGUAGES)
def test_words_of_a_language(page: str, cut: str, question: str, other: str) -> None:
    """Terms are stems by the rules of English, in any language: but for its end, each is a word."""
    words = unicodedata.normalize("NFC", cut).split()
    found = terms(page)
    assert len(found) == len(words)
    assert all(word.startswith(term[:-1]) for term, word in zip(found, words, strict=True))
    assert rank([other, page], question) == [1, 0]
    assert relevance([other, page], question)[1] > 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_letters_may_be_stored_apart_and_words_hyphenated(language: str) -> None:
    page = LANGUAGES[language][0]
    assert terms(unicodedata.normalize("NFD", page)) == terms(page)
    if language != "thai":
        for none in "\u00ad\u200b\u200d\ufeff":
            assert terms(re.sub(r"(?<=\w)(?=\w)", none, page)) == terms(page)


@pytest.mark.parametrize(("text", "expected"), UNCHANGED.items())
def test_what_was_cut_well_is_cut_as_before(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(("written", "common"), SAME)
def test_words_that_are_written_in_two_ways(written: str, common: str) -> None:
    assert terms(written) == terms(common)


def test_digits_go_with_latin_letters_and_signs_with_none() -> None:
    assert terms("3ème km² 1º word⁴") == ["3ème", "km", "1º", "word", "⁴"]


def test_words_between_white_space_are_found_in_either_form() -> None:
    pages = ["gulls", "ropes", "Zoe\u0308 sold the ca\u00adfe\u0301"]
    assert relevance_by_words(pages, "CAFÉ").argmax() == 2
