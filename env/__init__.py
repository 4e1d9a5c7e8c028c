"""Environments of stateless steps. Imports nothing heavier than the standard library."""
