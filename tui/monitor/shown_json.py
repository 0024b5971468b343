"""What the Monitor shows as one JSON object, with the keys of `llmtune snapshot --json` where it has them too."""

import json
from typing import Any

from engine.samples.snapshot import histogram_json
from engine.scrape.metric_names import LATENCIES
from tui.monitor.subject import Subject


def shown_json(subject: Subject) -> str:
    """Units in the keys, absent as null. Figures of a server that does not answer are null, not its last."""
    watched = subject.watched
    assert watched is not None
    window = watched.window
    newest = window.newest if subject.answers else None
    limit = watched.limit(subject.knobs) if subject.limited else None
    shown: dict[str, Any] = {
        "schema": 1,
        "at": watched.newest.at if watched.newest else None,
        "state": subject.state[0].partition(" ")[2],
        "trouble": subject.trouble,
        "url": subject.url,
        "window_s": window.seconds,
        "kv_perc": newest.kv_perc if newest else None,
        "kv_cache_tokens": subject.kv_tokens,
        "running": newest.running if newest else None,
        "waiting": newest.waiting if newest else None,
        "preemptions": newest.preemptions if newest else None,
        "rates": {
            "generation_tok_per_s": watched.rate("output") if newest else None,
            "prompt_tok_per_s": watched.rate("prompt") if newest else None,
            "requests_per_s": watched.rate("requests") if newest else None,
        },
        "latency": {name: histogram_json(window.histogram(name), "ms", 1000) for name in LATENCIES} if newest else None,
        "gpus": newest.raw.get("gpus", []) if newest else [],
        "limited_by": limit.text if limit is not None else None,
    }
    return json.dumps(shown, indent=1, ensure_ascii=False)
