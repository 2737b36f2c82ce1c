"""The commands, each in a file of its own; its `add_NAME` tells the parser of it."""
