"""The parts of a Transformer: tensors in, tensors out; each file is a section of the paper.

A tensor's name ends in its dimensions, one letter each, and a test checks that the names tell the truth:

    R  rows of a batch: packed sentences in training, one hypothesis each in search
    W  positions in a row, of the side that looks (a row's width)
    K  positions that are looked at (keys)
    D  width of the model              (the paper's d_model)
    H  heads                           (h)
    E  width of one head's query, key  (d_k)
    U  width of one head's value       (d_v)
    F  hidden width of the feed-forward layer (d_ff)
    V  vocabulary
    J  tokens that any translation may have, where a part of the vocabulary is looked at
    O  tokens that a sentence may have besides: its own
    G  groups of the vocabulary that are looked at together
    P  positions of all rows, one after the other (R times W)
    N  sentences in search
    B  hypotheses of each sentence (its beam)
    C  candidates to continue them
    T  tokens written so far
    S  slots that keep what every hypothesis of a sentence has written: T times B
    A  answers kept of each sentence
    L  layers
    M  models that translate together
    1  a dimension of size one, kept to broadcast
"""
