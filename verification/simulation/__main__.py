"""`python -m verification.simulation SEED [COUNT]`: repeat one scenario with its trace, or run several."""

from __future__ import annotations

import sys
import time

from verification.simulation import simulate


def main(arguments: list[str]) -> int:
    first, count = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1
    began = time.monotonic()
    failed = 0
    for seed in range(first, first + count):
        report = simulate(seed)
        if count == 1:
            print("\n".join(report.trace))
            print(report.digest)
        if count == 1 or not report.ok:
            print(report)
        failed += not report.ok
    took_s = time.monotonic() - began
    print(f"{count} scenarios in {took_s:.1f} s ({count / took_s:.0f}/s), {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
