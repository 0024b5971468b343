import pytest

from store.errors import NotFound, StoreError
from store.evaluation_job import GOING_ON
from store.reader import Reader
from store.records import AdapterRecord
from store.writer import Writer
from tests.store.examples import a_dataset, a_training, an_adapter, an_evaluation, an_evaluation_job, an_event


def test_datasets_and_trainings_are_found_as_a_person_names_them(writer: Writer, reader: Reader) -> None:
    for name in ("alpaca", "chats", "alpaca"):
        dataset = writer.insert(a_dataset(name=name))
        writer.insert(a_training(dataset, name=name, state="done" if name == "chats" else "running"))
    assert [reader.dataset(word).id for word in (2, "1", "alpaca", "chats", "last", " last ")] == [2, 1, 3, 2, 3, 3]
    assert [reader.training(word).id for word in (1, "alpaca", "last")] == [1, 3, 3]
    assert [training.id for training in reader.trainings(("done",))] == [2]
    assert len(reader.datasets()) == len(reader.trainings()) == 3
    with pytest.raises(NotFound, match="There is no dataset 'wikitext'"):
        reader.dataset("wikitext")
    with pytest.raises(NotFound, match="There is no training 9: `llmtune lora list`"):
        reader.training(9)


def test_adapters_are_found_by_name_version_and_number(writer: Writer, reader: Reader) -> None:
    for name, version in (("b", 1), ("a", 1), ("b", 2), ("b", 10)):
        writer.insert(an_adapter(name=name, version=version))
    assert [adapter.version for adapter in reader.adapters("b")] == [1, 2, 10]
    assert len(reader.adapters()) == 4
    labels = [reader.adapter(word).label for word in ("b", "b@2", "a", 2, "4", "b@10")]
    assert labels == ["b@10", "b@2", "a@1", "a@1", "b@10", "b@10"]
    with pytest.raises(NotFound, match="There is no b@3: of b there is version 1, 2, 10"):
        reader.adapter("b@3")
    for word in ("c", "@1", "99999999999999999999"):
        with pytest.raises(NotFound, match="There is no adapter"):
            reader.adapter(word)


def test_versions_count_up_within_a_name(writer: Writer) -> None:
    assert writer.next_version("a") == 1
    writer.insert(an_adapter(name="a", version=1))
    writer.insert(an_adapter(name="b", version=4))
    assert [writer.next_version(name) for name in ("a", "b")] == [2, 5]
    with pytest.raises(StoreError, match="UNIQUE"):
        writer.insert(an_adapter(name="a", version=1))


@pytest.mark.parametrize(
    "change",
    [{"path": "/elsewhere"}, {"signature": "00" * 32}, {"losses": {}}, {"parameters": {"r": 8}}, {"version": 2}],
    ids=lambda change: next(iter(change)),
)
def test_a_version_never_changes(change: dict[str, object], writer: Writer, reader: Reader) -> None:
    number = writer.insert(an_adapter())
    with pytest.raises(StoreError, match="a version of an adapter never changes: register another"):
        writer.update(AdapterRecord, number, **change)
    assert reader.adapter("alpaca") == an_adapter(id=number)


def test_a_deleted_version_is_gone_and_its_number_is_not_given_again(writer: Writer, reader: Reader) -> None:
    writer.insert(an_adapter())
    second = writer.insert(an_adapter(version=2, signature="00" * 32))
    writer.insert(an_evaluation(second))
    writer.update(AdapterRecord, second, deleted_at="2026-11-30T12:34:56.000Z")
    assert [adapter.version for adapter in reader.adapters("alpaca")] == [1]
    assert [adapter.version for adapter in reader.adapters()] == [1]
    assert reader.adapter("alpaca").version == 1
    for word in ("alpaca@2", second):
        with pytest.raises(NotFound, match="alpaca@2 was deleted at 2026-11-30 12:34 UTC"):
            reader.adapter(word)
    assert reader.adapter_ever("alpaca@2").signature == "00" * 32
    assert writer.next_version("alpaca") == 3
    assert writer.known_adapter("alpaca", "00" * 32) is None, "the same files again are a new version"
    assert len(reader.evaluations(second)) == 1, "what was measured stays told"


def test_what_is_deleted_stays_so(writer: Writer, reader: Reader) -> None:
    number = writer.insert(an_adapter())
    writer.update(AdapterRecord, number, deleted_at="2026-11-30T12:00:00.000Z")
    for again in (None, "2026-12-01T12:00:00.000Z"):
        with pytest.raises(StoreError, match="was deleted stays so: register another"):
            writer.update(AdapterRecord, number, deleted_at=again)
    with pytest.raises(StoreError, match="a version of an adapter never changes"):
        writer.update(AdapterRecord, number, signature="00" * 32)
    with pytest.raises(StoreError, match="the number of a version is given once"), writer.transaction():
        writer._connection.execute("DELETE FROM adapter")
    assert reader.adapter_ever(number).deleted_at == "2026-11-30T12:00:00.000Z"


def test_what_was_proved_of_a_version_may_be_noted(writer: Writer, reader: Reader) -> None:
    number = writer.insert(an_adapter())
    writer.update(AdapterRecord, number, served={"at": "2026-11-30T11:00:00.000Z"}, notes="terse")
    adapter = reader.adapter("alpaca@1")
    assert (adapter.served, adapter.notes) == ({"at": "2026-11-30T11:00:00.000Z"}, "terse")


def test_an_adapter_keeps_its_training_and_that_its_dataset(writer: Writer) -> None:
    training = writer.insert(a_training(writer.insert(a_dataset())))
    writer.insert(an_adapter(training_id=training))
    for table in ("dataset", "training"):
        with pytest.raises(StoreError, match="FOREIGN KEY"), writer.transaction():
            writer._connection.execute(f"DELETE FROM {table}")


def test_a_training_has_events_of_its_own(writer: Writer, reader: Reader) -> None:
    training = writer.insert(a_training(writer.insert(a_dataset())))
    writer.insert(an_event(training_id=training, text="epoch 1 ended"))
    writer.insert(an_event(text="other"))
    assert [event.text for event in reader.events(training_id=training)] == ["epoch 1 ended"]


def test_the_same_files_are_known_within_a_name(writer: Writer) -> None:
    number = writer.insert(an_adapter())
    writer.insert(an_adapter(version=2, signature="00" * 32))
    assert writer.known_adapter("alpaca", "ef" * 32) == an_adapter(id=number)
    assert writer.known_adapter("alpaca", "11" * 32) is None
    assert writer.known_adapter("chat", "ef" * 32) is None


def test_evaluations_belong_to_a_version(writer: Writer, reader: Reader) -> None:
    first, second = writer.insert(an_adapter()), writer.insert(an_adapter(version=2))
    for adapter, loss in ((first, 1.3), (second, 1.1), (first, 1.2)):
        writer.insert(an_evaluation(adapter, adapter_loss=loss))
    assert [each.adapter_loss for each in reader.evaluations(first)] == [1.3, 1.2]
    assert len(reader.evaluations()) == 3
    assert reader.evaluations(second)[0].answers[0]["adapter"] == "<<BLUE>>"


def test_an_evaluation_is_meant_by_number_label_or_last(writer: Writer, reader: Reader) -> None:
    first, second = writer.insert(an_adapter()), writer.insert(an_adapter(version=2))
    writer.insert(an_evaluation_job(first, state="done"))
    writer.insert(an_evaluation_job(second, name="alpaca@2"))
    writer.insert(an_evaluation_job(first, state="waiting", done=None, records=None))
    assert [reader.evaluation_job(word).id for word in (1, "2", "alpaca@1", "alpaca@2", "last")] == [1, 2, 3, 2, 3]
    assert [job.id for job in reader.evaluation_jobs(GOING_ON)] == [2, 3]
    assert [job.id for job in reader.evaluation_jobs(adapter_id=first)] == [1, 3]
    assert [job.id for job in reader.evaluation_jobs(GOING_ON, first)] == [3]
    with pytest.raises(NotFound, match="There is no evaluation 'alpaca@3'"):
        reader.evaluation_job("alpaca@3")


def test_a_number_of_an_evaluation_is_never_that_of_another_result(writer: Writer) -> None:
    writer.insert(an_adapter())
    writer.insert(an_evaluation())
    writer.insert(an_evaluation())
    assert writer.next_evaluation() == 3, "results that came without their work count"
    writer.insert(an_evaluation_job(id=7))
    assert writer.next_evaluation() == 8
