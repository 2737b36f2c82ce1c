"""Looking inside: what every head of a model looks at while it translates a sentence, on any machine that has numpy."""
