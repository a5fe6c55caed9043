"""A page posted to a pull request through GitHub's API: once, in its own comment, with nothing private in it."""
