"""A run as a page that shows how it learns, while it does."""
