"""A model and an adapter in numbers, from the config alone: layers, parameters, memory."""
