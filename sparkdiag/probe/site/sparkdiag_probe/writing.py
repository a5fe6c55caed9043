"""``dispatch-<pid>.jsonl``: whole lines, appended by the probe's thread, up to a size (sparkdiag.evidence.ledger)."""

import json
import os

LARGEST_FILE_BYTES = 32 << 20
LARGEST_TOTALS_BYTES = 8 << 20
"""On top of that, so that the counts go on."""
encode = json.JSONEncoder(separators=(",", ":")).encode


class LineFile:
    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, f"dispatch-{os.getpid()}.jsonl")  # noqa: PTH118
        self.written_bytes = 0
        self._torn = False

    def append(self, lines: "list[str]", *, totals: bool = False) -> int:
        """How many lines were written: as many as there is room for, in one go."""
        room = LARGEST_FILE_BYTES + (LARGEST_TOTALS_BYTES if totals else 0) - self.written_bytes
        data, count = [b"\n"] if self._torn else [], 0
        for line in lines:
            one = line.encode() + b"\n"
            room -= len(one)
            if room < 0:
                break
            data.append(one)
            count += 1
        return count if count and self._write(b"".join(data)) else 0

    def _write(self, data: bytes) -> bool:
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                done = os.write(fd, data)
            finally:
                os.close(fd)
        except OSError:
            return False
        self.written_bytes += done
        if done == 0:
            return False
        self._torn = done < len(data)
        return not self._torn
