"""The pages with tables of a whole corpus: their commands run, and print what the pages show. They
need a download, QMSum: CI runs each on one day of five."""

from collections.abc import Callable

import pytest

from tests.support.command import NEEDS_WHOLE
from tests.support.docs.executed_pages import OF_WHOLE_QMSUM, Outcome, check

pytestmark = [*NEEDS_WHOLE, pytest.mark.sampled, pytest.mark.timeout(2400)]


@pytest.mark.parametrize("name", OF_WHOLE_QMSUM)
def test_a_pages_commands_run_and_print_what_it_shows(
    executed: Callable[[str], Outcome], name: str
) -> None:
    check(name, executed(name))
