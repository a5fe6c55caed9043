"""What one bisection is asked, and the journal that keeps the question and every step."""
