"""The statistics of a decision: from numbers alone, each formula with its source."""
