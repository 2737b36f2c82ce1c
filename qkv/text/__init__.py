"""Text and ids: reading and cleaning parallel text, subwords; nothing here needs torch."""
