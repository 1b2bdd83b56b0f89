"""Bundles to tamper with: their tables as text, and manifests mended afterwards."""

import csv
import io
import json

from tinydec.evidence.manifest import sha256

Table = list[list[str]]


def parsed(data: bytes) -> Table:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def written(rows: Table) -> bytes:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue().encode()


def with_true_hashes(files: dict[str, bytes]) -> dict[str, bytes]:
    """Update the manifest, as a careful forger would."""
    manifest = json.loads(files["manifest.json"])
    for name, entry in manifest["files"].items():
        if name in files:
            entry["sha256"], entry["bytes"] = sha256(files[name]), len(files[name])
            if name.endswith(".csv"):
                entry["rows"] = len(parsed(files[name])) - 1
    return files | {"manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()}
