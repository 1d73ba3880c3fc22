"""Cases and measurements: each case prints a line with its time, and a table of the parts ends the program."""

import contextlib
import time
import traceback


class Report:
    def __init__(self):
        self.parts, self.figures = [], []
        self.started = self.last = time.monotonic()

    @contextlib.contextmanager
    def part(self, name):
        """Runs a part of the check. An error ends this part, as a case that failed."""
        print(f"\n== {name}", flush=True)
        self.parts.append([name, 0, 0, time.monotonic()])
        try:
            yield
        except Exception:
            self.case(f"{name} ends", False, traceback.format_exc())
        self.parts[-1][3] = time.monotonic() - self.parts[-1][3]

    def case(self, name, is_right, detail=""):
        """Counts and prints a case with the time since the last one; of one that failed, the detail too."""
        now = time.monotonic()
        took, self.last = now - self.last, now
        part = self.parts[-1]
        part[1] += 1
        part[2] += not is_right
        print(f"{'ok  ' if is_right else 'FAIL'} {took:5.1f} s  {name}", flush=True)
        if not is_right:
            print("     " + str(detail).strip()[-3000:].replace("\n", "\n     "), flush=True)

    def figure(self, name, value):
        """Keeps a measurement for the end."""
        self.figures.append((name, value))

    def end(self):
        """Prints measurements and the table; returns the exit code."""
        print("\n== measured")
        for name, value in self.figures:
            print(f"{value:>44}  {name}")
        print("\n== parts\n   cases  failed      time")
        for name, cases, failed, seconds in self.parts:
            print(f"{cases:8}{failed:8}{seconds:8.1f} s  {name}")
        cases, failed = (sum(part[at] for part in self.parts) for at in (1, 2))
        print(f"{cases:8}{failed:8}{time.monotonic() - self.started:8.1f} s  in all", flush=True)
        return 1 if failed or not cases else 0
