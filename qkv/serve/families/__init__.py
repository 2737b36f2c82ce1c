"""Protocols that clients speak: thin adapters over `qkv.serve.desk`, each with its own shapes and sentences."""
