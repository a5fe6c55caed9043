"""The values a run is made of: frozen, typed, written to JSON and read back.

Nothing here knows a clock, a process, the network or a terminal. Every time named ``*_s`` with no other word is in
seconds on the *run clock*: monotonic, zero when the run began (``RunRecord.started_at`` is that moment on the wall).
"""
