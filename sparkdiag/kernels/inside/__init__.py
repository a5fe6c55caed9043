"""Runs in a child of the environment under test: standard library, torch, triton and this folder only."""
