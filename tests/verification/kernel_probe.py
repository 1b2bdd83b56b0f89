"""Run by test_kernels in a process of its own: prints what one OpenBLAS kernel computes."""

import json

from threadpoolctl import threadpool_info

from tinydec.generation.generate import generate
from tinydec.model.storage import load_checkpoint
from tinydec.runspec import Policy, RunSpec
from tinydec.verification.equivalence import verify_prefixes

checkpoint = load_checkpoint()
report = verify_prefixes(checkpoint)
specs = (RunSpec(), RunSpec(policy=Policy("sample", 1.0, 3), seed=41))
print(
    json.dumps(
        {
            "kernels": [lib.get("architecture") for lib in threadpool_info()],
            "max_abs_error": report.max_abs_error,
            "passed": report.passed_count,
            "traces": [
                checkpoint.vocabulary.decode(generate(checkpoint, spec).token_ids) for spec in specs
            ],
        }
    )
)
