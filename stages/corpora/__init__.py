"""Corpora in their native formats, one file each.

A loader yields one `Loaded` per document, in file order: the Document and its Questions. What
cannot be read is a row too, with problem `bad_input` and a `detail` of the form
`file:line: what is wrong; the mend`. Raises UsageError where the whole path is of no use.
"""
