"""Whether a run is a measurement: one module for each thing that can go wrong, pure functions all."""
