"""The commands of the command line, one module each, imported when it is called."""
