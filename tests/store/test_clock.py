from datetime import UTC, datetime, timedelta, timezone

import pytest

from store.clock import format_utc, parse_utc, unix_seconds, utc_now


def test_now_is_utc_with_milliseconds_and_reads_back() -> None:
    text = utc_now()
    assert len(text) == len("2026-11-30T10:15:00.123Z")
    assert text.endswith("Z")
    assert abs(datetime.now(UTC) - parse_utc(text)) < timedelta(seconds=5)


def test_other_zones_become_utc() -> None:
    assert format_utc(datetime(2026, 11, 30, 1, tzinfo=timezone(timedelta(hours=2)))) == "2026-11-29T23:00:00.000Z"
    assert parse_utc("2026-11-30T01:00:00+02:00") == datetime(2026, 11, 29, 23, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        parse_utc("2026-11-30T01:00:00")
    with pytest.raises(ValueError, match="without a zone"):
        format_utc(datetime(2026, 11, 30))


def test_seconds_are_those_since_1970_whatever_the_zone() -> None:
    assert unix_seconds("1970-01-01T00:00:01.500Z") == 1.5
    assert unix_seconds("1970-01-01T01:00:01.500+01:00") == 1.5
    with pytest.raises(ValueError, match="without a zone"):
        unix_seconds("1970-01-01T00:00:01")
