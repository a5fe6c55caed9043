"""What runs inside the confined child: the standard library, and torch of the interpreter under test."""
