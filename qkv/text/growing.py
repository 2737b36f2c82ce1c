"""Text that grows token by token, and is never taken back."""

from __future__ import annotations

import codecs

from qkv.text.editing import Writing
from qkv.text.subwords import Tokenizer
from qkv.text.typography import settled


class GrowingText:
    """What can be said of a text while its tokens come: whole characters only, and marks as they will be written."""

    def __init__(self, tokenizer: Tokenizer, style: Writing | None = None) -> None:
        self._tokenizer = tokenizer
        self._style = style
        self._ids: list[int] = []
        self._undecided = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.text = ""
        """All that was said."""

    def add(self, token: int) -> str:
        """What one token more adds to the text; nothing while a character is spelled in bytes and not yet whole."""
        if self._tokenizer.is_control(token):
            # A symbol that says nothing parts no bytes of a character.
            return ""
        self._ids.append(token)
        byte = self._tokenizer.byte(token)
        if byte is None:
            self._undecided.reset()
        else:
            self._undecided.decode(bytes([byte]))
        held_back = len(self._undecided.getstate()[0])
        text = self._tokenizer.decode(self._ids[: len(self._ids) - held_back])
        if self._style is not None:
            text = settled(self._style.write(text[: self._style.decided(text)]).text)
        more, self.text = text[len(self.text) :], text
        return more
