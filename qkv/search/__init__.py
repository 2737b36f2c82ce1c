"""Looking for translations: a step function goes in, hypotheses come out; nothing here knows a model."""
