"""Who runs a model in a search, each as quickly as its device can."""
