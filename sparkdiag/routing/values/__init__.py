"""What names may hold: constants, spans, shapes; what the configuration gives; one way's state. Pure."""
