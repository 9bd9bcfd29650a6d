"""Tests against a real scheduler."""
