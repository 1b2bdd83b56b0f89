"""A table's download button, in the bytes of the project's own writer."""

from __future__ import annotations

import pandas as pd

from tinydec.evidence.csv_format import write_csv
from tinydec.evidence.schema import TableSchema
from tinydec.ui.show import download


def csv_button(label: str, table: pd.DataFrame, schema: TableSchema) -> None:
    """Draw a button that downloads a table; its key is the file's name."""
    download(label, lambda: write_csv(table, schema), schema.file, key=schema.file)
