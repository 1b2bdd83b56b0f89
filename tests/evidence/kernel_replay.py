"""Run by test_kernel_replays in a process of its own: replays bundles under one OpenBLAS kernel."""

import json
import sys
from pathlib import Path

from threadpoolctl import threadpool_info

from tinydec.evidence.replay import read_bundle, replay_bundle

found = {Path(folder).name: replay_bundle(read_bundle(Path(folder))) for folder in sys.argv[1:]}
print(
    json.dumps(
        {
            "kernels": [lib.get("architecture") for lib in threadpool_info()],
            "differences": {
                name: None if report.passed else str(report.first_difference)
                for name, report in found.items()
            },
        }
    )
)
