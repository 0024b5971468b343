"""What the screens ask of the store: through an index each, so that months of history cost no more than a day of it."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from store.database import open_reader, open_writer
from store.location import database_file
from store.reader import Reader
from store.records import LaunchRecord
from tests.store.examples import an_import_file
from tests.tui.lora_world import fill as fill_lora
from tests.tui.tune_session import record_session
from tui.app import LlmtuneApp
from tui.poller import going_on
from tui.screens.base import LlmtuneScreen
from tui.screens.compare import CompareScreen
from tui.screens.imports import ImportReportScreen, ImportsScreen
from tui.screens.lora import LoraScreen
from tui.screens.lora_adapter import AdapterScreen
from tui.screens.lora_dataset import DatasetScreen
from tui.screens.lora_form import TrainingFormScreen
from tui.screens.lora_training import TrainingScreen
from tui.screens.monitor import MonitorScreen
from tui.screens.plot import PlotScreen
from tui.screens.run_charts import RunChartsScreen
from tui.screens.run_list import RunListScreen
from tui.screens.servers import ServersScreen
from tui.screens.session_report import SessionReportScreen
from tui.screens.sessions import SessionsScreen
from tui.screens.tune import TuneScreen

SCREENS: dict[str, Callable[[], LlmtuneScreen]] = {
    "Servers": ServersScreen,
    "Monitor": MonitorScreen,
    "Tune": TuneScreen,
    "Sessions": SessionsScreen,
    "report": lambda: SessionReportScreen(1),
    "plot": lambda: PlotScreen(1),
    "runs": lambda: RunListScreen(1),
    "charts of a run": lambda: RunChartsScreen.of_run(2),
    "life of a server": lambda: RunChartsScreen.of_server(1),
    "comparison": lambda: CompareScreen(1, 2),
    "imports": ImportsScreen,
    "an import": lambda: ImportReportScreen(None),
    "LoRA": LoraScreen,
    "a training": lambda: TrainingScreen(2),
    "an adapter": lambda: AdapterScreen(2),
    "a data set": lambda: DatasetScreen(1),
    "a new training": TrainingFormScreen,
}
WHOLE = frozenset({"session", "import_file", "dataset", "training", "adapter", "evaluation_job"})
"""Tables of which a screen lists every row."""


def scanned(database: Path, questions: list[str]) -> set[str]:
    """The tables that are read from end to end to answer: not those of which the last so many rows are read by id, nor
    rows that are counted in an index."""
    connection = sqlite3.connect(database)
    found: set[str] = set()
    try:
        for question in questions:
            for _, _, _, step in connection.execute(f"EXPLAIN QUERY PLAN {question}"):
                table = re.match(r"SCAN (\w+)(?! USING COVERING| VIRTUAL)\b", step)
                if table is not None and " LIMIT " not in question and table[1] not in ("slot", "json_each"):
                    found.add(table[1])
    finally:
        connection.close()
    return found


def asked(reader: Reader, ask: Callable[[Reader], object]) -> tuple[list[str], object]:
    """The SQL of what is asked, with its values, and what was found."""
    questions: list[str] = []
    reader._connection.set_trace_callback(questions.append)
    found = ask(reader)
    reader._connection.set_trace_callback(None)
    return [question for question in questions if question.startswith("SELECT")], found


@pytest.fixture
def database(filled: Path, data_dir: Path) -> Path:
    with open_writer(database_file(data_dir)) as writer:
        record_session(writer, finished=False)
        record_session(writer)
        fill_lora(writer, data_dir)
        writer.insert_new_file(an_import_file())
        writer.update(LaunchRecord, 1, server_id=1)
    return database_file(data_dir)


async def test_no_screen_reads_a_table_from_end_to_end(app: LlmtuneApp, database: Path) -> None:
    """One app for all: what is asked does not depend on what was shown before."""
    async with app.run_test(size=(140, 45)) as pilot:
        app._poller.stop()
        with open_reader(database) as reader:
            for name, make in SCREENS.items():
                screen = make()
                await app.push_screen(screen)
                await pilot.pause()
                for _ in range(2):  # opened, and looked at again
                    questions, snapshot = asked(reader, screen.refresh_from_store)
                    assert scanned(database, questions) <= WHOLE, (name, questions)
                    screen.show(snapshot)
                await app.pop_screen()


def test_what_goes_on_is_found_by_its_state(database: Path) -> None:
    with open_reader(database) as reader:
        questions, _ = asked(reader, going_on)
    assert len(questions) == 4
    assert scanned(database, questions) == set()


def test_the_check_sees_a_table_that_is_read_from_end_to_end(database: Path) -> None:
    with open_reader(database) as reader:
        questions, _ = asked(reader, lambda reader: reader._rows("SELECT * FROM run WHERE seed = 3"))
    assert scanned(database, questions) == {"run"}
