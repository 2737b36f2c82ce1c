"""How a model learns: objective, optimizer and schedules, the loop, progress."""
