"""One data set: its report as it was kept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tui.legend import Number
from tui.lora.details import DatasetDetails
from tui.lora.documents import dataset_parts
from tui.screens.document import MARGIN, DocumentScreen
from tuning.document import Part

if TYPE_CHECKING:
    from store.reader import Reader


class DatasetScreen(DocumentScreen):
    """To read."""

    LEGEND: ClassVar[tuple[Number, ...]] = (
        Number("conversations", "those that can be used; the two parts share no first question"),
        Number("tokens", "with the model's chat template; – where no tokenizer was asked"),
        Number("lines", "where a record begins in the file, from 1; the first ones"),
    )

    def __init__(self, dataset_id: int) -> None:
        super().__init__()
        self._number = dataset_id
        self._found: DatasetDetails | None = None

    def refresh_from_store(self, reader: "Reader") -> DatasetDetails:
        """The data set and its trainings."""
        trainings = tuple(one for one in reader.trainings() if one.dataset_id == self._number)
        return DatasetDetails(reader.dataset(self._number), trainings)

    def show(self, snapshot: DatasetDetails) -> None:
        """Draw it where it is another."""
        if snapshot != self._found:
            self._found = snapshot
            self.redraw()

    def parts(self, width: int) -> Sequence[Part]:
        """The report."""
        return dataset_parts(self._found, width - MARGIN) if self._found is not None else ()
