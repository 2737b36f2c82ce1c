"""Commands that are too long for the command line's own file; `add` tells a parser of one."""
