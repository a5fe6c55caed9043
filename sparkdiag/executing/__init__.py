"""The dynamic twin of a route: a revision's own dispatch, run in a confined child over shapes without contents."""
