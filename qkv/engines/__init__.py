"""Who runs the model for a search; which one is chosen by the device and by what is loaded."""
