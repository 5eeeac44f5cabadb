"""The simulated dealing of documents: cases whose makespan is known but for the calls' own lengths,
0.8 to 1.2 seconds each."""

import pytest

from benchmarks.dealing import Dealing, shortest


@pytest.mark.parametrize(
    ("pages", "engines", "sequences", "calls_in_a_row"),
    [
        ([3], 1, 8, 4),  # three pages, and the last one's gist beside nothing
        ([1] * 8, 1, 1, 16),  # one after the other
        ([1] * 8, 2, 1, 8),  # half of them each
        ([4, 1], 2, 1, 8),  # one each
        ([5] * 64, 64, 8, 6),
    ],
)
def test_what_waits_for_what(
    pages: list[int], engines: int, sequences: int, calls_in_a_row: int
) -> None:
    found = Dealing(pages, engines, sequences).seconds()
    assert 0.8 * calls_in_a_row <= found <= 1.2 * calls_in_a_row


def test_the_bound_is_all_work_or_the_longest_chain() -> None:
    assert shortest([10, 2, 2, 2], 2, 1) == 16  # 32 calls among two sequences
    assert shortest([10, 2, 2, 2], 8, 8) == 11  # ten pages and a gist
