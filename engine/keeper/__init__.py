"""The machinery of keepers: start one detached, guard it by a lock, talk to it over its socket."""
