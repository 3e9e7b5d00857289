"""Tick function."""
