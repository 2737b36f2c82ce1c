"""Text: reading and cleaning it, sentences, subwords, terms and tags; nothing here needs torch."""
