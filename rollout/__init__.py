"""Rollouts: many episodes at once through one inference engine."""
