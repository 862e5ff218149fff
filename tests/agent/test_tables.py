"""The tables of docs/tools.md hold: each row is run."""

from __future__ import annotations

import pytest

from .tables import PAGE, RESULTS, SIGNATURES, ResultRow, SignatureRow, page_with_tables


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row.parameters)
def test_a_call_reaches_the_function_as_the_table_says(row: SignatureRow) -> None:
    assert row.call() == row.received


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: row.value)
def test_a_returned_value_reaches_the_model_as_the_table_says(row: ResultRow) -> None:
    assert row.text() == row.content


def test_the_page_holds_the_tables_as_they_are() -> None:
    page = PAGE.read_text("utf-8")

    assert page == page_with_tables(page), "run: python -m tests.agent.tables"
