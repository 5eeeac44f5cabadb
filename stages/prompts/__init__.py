"""One module per prompt: its fields, sample fills, parser, constraint, default reply budget, what
the extractive engine replies, and what `gistmill plan` expects and at most counts.

The grammars are those of the paper's prompts (ReadAgent sections 3.1, 3.2, 4.1 and appendix H),
one parser for every family. Page numbers in prompts and replies are the family's (`first_page` 0 or
1), not page indexes.

break_point.py   where to end a page        look_up_p.py        which pages to read again, at once
gist.py          shorten a page             look_up_s.py        which page to read again next
answer.py        answer the question        rate_strict.py      does it agree: YES or NO
update_summary.py   carry notes along       rate_permissive.py  Yes; Yes, partially; No
judge_*.py       is it right: yes or no, by the type of the question (LongMemEval A.4)
passages.py      what prompts show of a text
replies.py       what parsers share         verdicts.py         what ratings share
"""
