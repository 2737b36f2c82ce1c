"""The whole of a beam search on the device: the host only looks, now and then, who has left.

`table` holds all that a search knows, at places that never move; `decoder` is the model as it takes a step of it; and
`search` seats sentences, has steps taken and brings the answers home.
"""
