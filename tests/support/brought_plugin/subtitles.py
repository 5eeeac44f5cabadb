"""An extractor of a kind of files of a user's own."""

from gistmill.plugin import Extracted, extractor


@extractor("srt")
def subtitles(content: bytes) -> Extracted:
    """The lines of subtitles without their times."""
    lines = content.decode().split("\n")
    return Extracted("\n".join(line for line in lines if "-->" not in line))
