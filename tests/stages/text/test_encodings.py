"""Bytes of every encoding: what a person reads in them, and what is said of it."""

import pytest

from stages.text.encodings import decoded

CHINESE = """第一章　老王在灯塔上住了三十年。

每天傍晚，他提着油灯走上台阶。九月九日那天，楼梯塌了。

两天以后，面包师来救了他。
"""
TAIWAN = "老王在燈塔上住了三十年。\n每天傍晚，他提著油燈走上台階。兩天以後，麵包師來救了他。\n"
JAPANESE = """灯台守は毎晩、塔に登った。
疲れた彼は港の上のカモメに挨拶した。二日後にパン屋が来て、彼を助けた。
"""
KOREAN = """등대지기는 매일 저녁 탑에 올랐다.
지친 그는 갈매기에게 인사했다. 이틀 뒤에 빵집 주인이 왔다.
"""
RUSSIAN = """Смотритель каждый вечер поднимался на башню.
Пекарь пришёл через два дня и освободил его.
"""
GREEK = "Ο φύλακας ανέβαινε κάθε βράδυ στον πύργο.\nΟ φούρναρης ήρθε μετά από δύο μέρες.\n"
HEBREW = """השומר עלה כל ערב אל המגדל. עייף הוא בירך את השחפים מעל הנמל.
האופה בא אחרי יומיים ושחרר אותו.
"""
ARABIC = """كان الحارس يصعد كل مساء إلى البرج. وكان يحيي النوارس فوق الميناء.
جاء الخباز بعد يومين وحرره.
"""
THAI = "คนเฝ้าประภาคารขึ้นหอคอยทุกเย็น\nเขาเหนื่อยและทักทายนกนางนวลเหนือท่าเรือ\n"
POLISH = """Latarnik wchodził codziennie na wieżę.
Piekarz przyszedł po dwóch dniach, żeby mógł zejść.
"""
TURKISH = "Bekçi her akşam kuleye çıkardı. Işık söndü, ağaç büyüdü.\nFırıncı iki gün sonra geldi.\n"
GERMAN = "Der Wärter stieg täglich auf den Turm.\nMüde grüßte er die Möwen über dem Hafen.\n"
FRENCH = """Le gardien monta l’escalier à six heures. « Où êtes-vous ? »
Là-bas, la mer était agitée.
"""
ENGLISH = "The keeper’s lamp—an old one—was lit. “Who is there?” he asked…\nThe fee was €5.\n"
PAGE = '<html><head><meta charset="{}"></head><p>{}</p></html>'

# text, encoding in which it is written; what it is read as is compared as text alone.
DETECTED = [
    *[(CHINESE, name) for name in ("gbk", "gb18030", "utf-16-le", "utf-16-be")],
    (TAIWAN, "big5"),
    *[(JAPANESE, name) for name in ("cp932", "euc_jp", "iso2022_jp", "utf-16-le")],
    *[(KOREAN, name) for name in ("cp949", "utf-16-be")],
    *[(RUSSIAN, name) for name in ("cp1251", "koi8-r", "cp866", "iso8859-5", "utf-16-be")],
    *[(GREEK, name) for name in ("cp1253", "utf-16-le")],
    *[(HEBREW, "cp1255"), (ARABIC, "cp1256"), (THAI, "cp874"), (TURKISH, "cp1254")],
    *[(POLISH, name) for name in ("cp1250", "iso8859-2")],
    *[(GERMAN, name) for name in ("cp1252", "cp850", "utf-16-le")],
    *[(FRENCH, name) for name in ("cp1252", "mac_roman")],
    *[(ENGLISH, name) for name in ("cp1252", "mac_roman", "utf-16-be")],
]


@pytest.mark.parametrize(("text", "encoding"), DETECTED, ids=[name for _, name in DETECTED])
@pytest.mark.parametrize("times", [1, 1500], ids=["small", "large"])
def test_what_is_not_declared_is_detected_and_named(text: str, encoding: str, times: int) -> None:
    content = (text * times).encode(encoding)
    result = decoded(content)
    assert result.text == text * times
    assert result.note and result.encoding in result.note and result.num_lost == 0


# declared, the text, in what it is written; read as in browsers.
DECLARED = [
    ("windows-1252", FRENCH, "cp1252"), ("ISO-8859-1", ENGLISH, "cp1252"),
    ("us-ascii", ENGLISH, "cp1252"), ("iso-8859-2", POLISH, "iso8859-2"),
    ("koi8-r", "да", "koi8-r"), ("gb2312", "镕", "gbk"), ("Shift_JIS", "①", "cp932"),
    ("x-sjis", JAPANESE, "cp932"), ("euc-kr", "똠", "cp949"), ("hz-gb-2312", CHINESE, "hz"),
    ("iso-2022-kr", KOREAN, "iso2022_kr"), ("iso-8859-1", GERMAN, "utf-8"),
    ("utf-16", ENGLISH, "utf-8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "encoding", "content"),
    [
        *((ENGLISH, name, ENGLISH) for name in ("utf-8", "utf-8-sig", "utf-16", "utf-32")),
        *((ENGLISH, "utf-8", odd) for odd in (ENGLISH.replace("\n", "\r\n"), f"{ENGLISH}\0\0\0")),
        (ENGLISH, "utf-16", ENGLISH.replace("\n", "\r")),
        *((page, encoding, page) for page, encoding in (
            *((PAGE.format(declared, text), encoding) for declared, text, encoding in DECLARED),
            (f"Title: X\n\nCharacter set encoding: ISO-8859-1\n\n{ENGLISH}", "cp1252"))),
    ],
)  # fmt: skip
def test_what_is_certain_or_declared_has_no_note(text: str, encoding: str, content: str) -> None:
    result = decoded(content.encode(encoding))
    assert (result.text, result.note) == (text, None)


@pytest.mark.parametrize("declared", ["utf-8", "nonsense", "unicode_escape", "base64", "cp037"])
def test_a_declaration_that_cannot_be_is_none(declared: str) -> None:
    page = PAGE.format(declared, "caf\\xe9 – " + FRENCH)
    result = decoded(page.encode("cp1252"))
    assert result.text == page and result.note


@pytest.mark.parametrize(
    ("text", "bytes_", "num"),
    [(GERMAN, b"\x96", 1), (GERMAN, b"\xe9\xfe\x96", 3), ("é", b"\x96", 1), (CHINESE, b"\xe9", 1),
     (THAI, b"\xe9", 1), (RUSSIAN, b"\x80", 1), (GERMAN + "\ufffd", b"\x96", 1)],
)  # fmt: skip
def test_a_stray_byte_costs_itself(text: str, bytes_: bytes, num: int) -> None:
    for content in (bytes_ + b" " + text.encode(), text.encode() + bytes_):
        result = decoded(content)
        assert result.text.replace("\ufffd", "").strip() == text.replace("\ufffd", "").strip()
        assert result.num_lost == num
        assert (result.note or "").split(";")[0].endswith(f": {num}")


@pytest.mark.parametrize(
    "content",
    [bytes(n * n * 7 % 251 + 5 for n in range(3000)), bytes(range(256)), bytes(range(128, 256))],
)
def test_what_cannot_be_told_is_refused(content: bytes) -> None:
    with pytest.raises(UnicodeError):
        decoded(content)
