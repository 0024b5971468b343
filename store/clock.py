"""The one form in which times are written: UTC, ISO 8601 with ms and `Z`, so that text order is time order."""

from datetime import UTC, datetime


def utc_now() -> str:
    """The present moment, as `2026-11-30T10:15:00.123Z`."""
    return format_utc(datetime.now(UTC))


def format_utc(moment: datetime) -> str:
    """`moment` (timezone-aware) in the form of `utc_now`. Raises ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {moment.isoformat()}")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unix_seconds(text: str) -> float:
    """The seconds since 1970 of an ISO 8601 text. Raises ValueError as parse_utc."""
    return parse_utc(text).timestamp()


def parse_utc(text: str) -> datetime:
    """The timezone-aware UTC datetime of an ISO 8601 text. Raises ValueError for anything else or without a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {text}")
    return moment.astimezone(UTC)
