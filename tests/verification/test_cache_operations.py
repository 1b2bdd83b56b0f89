"""Each operation holds on the correct cache and fails on a broken one."""

import pytest

from tests.random_models import random_checkpoint
from tinydec.errors import InputError
from tinydec.model.cache import CacheExport, KVCache, LayerCache
from tinydec.model.config import ModelConfig
from tinydec.verification.cache_operations import try_operations

CHECKPOINT = random_checkpoint(ModelConfig(13, 11, 15, 3, 3, 23), 7, "float32")
IDS = (4, 0, 12, 7, 9)
# One slot: 3 layers x (K and V) x 3 heads x width 5 x 4 bytes.
SLOT_BYTES = 3 * 2 * 3 * 5 * 4


def holds(ids=IDS, keep=2):
    return {result.operation: result.holds for result in try_operations(CHECKPOINT, ids, keep)}


def test_every_operation_does_what_it_promises():
    results = try_operations(CHECKPOINT, IDS, 2)
    assert [r.length for r in results] == [5, 5, 5, 5, 2, 0]
    assert [r.valid_bytes for r in results] == [SLOT_BYTES * n for n in (5, 5, 5, 5, 2, 0)]
    assert [r.owner for r in results] == ["request-0"] * 5 + ["request-1"]
    assert all(r.holds for r in results)


def test_refusals_say_what_was_expected_and_found():
    messages = [r.message for r in try_operations(CHECKPOINT, IDS, 2) if r.message]
    assert messages[0] == "request that owns the cache: expected request-0, found request-1"
    start = f"checkpoint digest of the cache: expected {CHECKPOINT.digest[:12]}, found "
    assert messages[1].startswith(start)
    assert len(messages) == 2


@pytest.mark.parametrize("keep", [0, 1, 11])
@pytest.mark.parametrize("length", [1, 11])
def test_every_length_up_to_the_context_works(length, keep):
    if keep <= length:
        assert all(holds([3] * length, keep).values())


def test_truncate_that_leaves_old_rows_fails(monkeypatch):
    def lazy(self, length):
        self.length = min(self.length, length)
        del self.tags[length:]

    monkeypatch.setattr(LayerCache, "truncate", lazy)
    found = holds()
    assert not found["truncate(2)"]
    assert not found["reset()"]
    assert found["export()"]


def test_export_that_is_no_copy_fails_at_reset(monkeypatch):
    def views(self):
        parts = [layer.valid() for layer in self.layers]
        ids = self.token_ids().tolist()
        return CacheExport(self.owner, ids, *map(tuple, zip(*parts, strict=True)))

    monkeypatch.setattr(KVCache, "export", views)
    assert not holds()["reset()"]


def test_cache_that_refuses_nobody_fails(monkeypatch):
    monkeypatch.setattr(KVCache, "check", lambda *_: None)
    found = holds()
    assert not found["append by another request"]
    assert not found["append with changed weights"]


@pytest.mark.parametrize("keep", [-1, 6, True, 1.0])
def test_wrong_number_to_keep_is_refused(keep):
    with pytest.raises(InputError, match="keep: expected 0 to 5"):
        try_operations(CHECKPOINT, IDS, keep)
