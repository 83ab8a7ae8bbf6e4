"""Orgs, keys and the record of acts: written whole, found by every way there is, kept apart by org."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import SkipTest

from msgspec.structs import replace

from holdfast.model.keys import ApiKey, AuditRow, Org, Role
from holdfast.store.protocol import Changes, Loaded, LoadPlan
from verification.stores.bench import START, Bench, OpenStore
from verification.stores.records import ORG, OTHER_ORG, an_id


def an_org(slug: str = ORG, **fields: Any) -> Org:
    return Org(slug=slug, **({"created_at": START} | fields))


def a_key(number: int = 1, org: str = ORG, **fields: Any) -> ApiKey:
    defaults: dict[str, Any] = {"role": Role.WRITER, "hash": f"{number:064x}", "hint": "hf_abcd", "created_at": START}
    return ApiKey(id=an_id(number), org=org, **({"name": f"key {number}"} | defaults | fields))


def a_full_key(number: int = 1) -> ApiKey:
    return a_key(
        number,
        name="die größte",
        role=Role.ADMIN,
        created_by=an_id(90),
        expires_at=START + 1,
        revoked_at=START + 2,
        last_used_at=START + 3,
        rotated_at=START + 4,
        old_hash=f"{number + 1000:064x}",
        old_until_at=START + 5,
    )


def an_act(seq: int, org: str = ORG) -> AuditRow:
    return AuditRow(
        org=org,
        seq=seq,
        at=START + seq,
        actor=an_id(1),
        action="keys.create",
        subject=f"subject {seq}",
        address="192.0.2.1",
        outcome="done",
        detail="ü",
        digest=f"{seq:064x}",
    )


async def write_orgs(bench: Bench, *slugs: str, **changes: Any) -> None:
    await bench.write(orgs={slug: an_org(slug) for slug in slugs}, new_orgs=set(slugs), **changes)


class Keys:
    shared = True

    async def test_a_key_is_loaded_as_it_was_written(self, open_store: OpenStore) -> None:
        """Every field of it, and of its org; what is not there is not in the answer."""
        bench = await Bench.opened(open_store)
        org = an_org(closed_at=START + 9, audit_seq=3, audit_digest="ab")
        await bench.write(orgs={ORG: org}, new_orgs={ORG}, keys={an_id(1): a_full_key()})

        loaded = await bench.load(orgs={ORG, "nobody"}, keys={an_id(1), an_id(2)})
        assert loaded.orgs == {ORG: org}
        assert loaded.keys == {an_id(1): a_full_key()}

    async def test_a_key_is_changed_whole(self, open_store: OpenStore) -> None:
        """From a bare one to one with every field, and back."""
        bench = await Bench.opened(open_store)
        bare = a_key()
        await write_orgs(bench, ORG, keys={bare.id: bare})
        full = replace(a_full_key(), created_by=None)
        await bench.write(keys={bare.id: full})
        assert await bench.store.key(ORG, bare.id) == full

        await bench.write(keys={bare.id: bare})
        assert await bench.store.key(ORG, bare.id) == bare

    async def test_an_org_is_changed(self, open_store: OpenStore) -> None:
        """Its end, and the end of its record."""
        bench = await Bench.opened(open_store)
        await write_orgs(bench, ORG)
        changed = an_org(closed_at=START + 1, audit_seq=2, audit_digest="cd")
        await bench.write(orgs={ORG: changed})

        assert await bench.store.org(ORG) == changed
        assert await bench.store.org(OTHER_ORG) is None

    async def test_a_key_is_found_by_its_hash_and_the_one_before(self, open_store: OpenStore) -> None:
        """With its org; whether it still counts is not the store's business."""
        bench = await Bench.opened(open_store)
        key = a_full_key()
        await write_orgs(bench, ORG, OTHER_ORG, keys={key.id: key, an_id(2): a_key(2, OTHER_ORG)})

        assert await bench.store.key_by_hash(key.hash) == (key, an_org())
        assert await bench.store.key_by_hash(key.old_hash or "") == (key, an_org())
        assert await bench.store.key_by_hash(a_key(2).hash) == (a_key(2, OTHER_ORG), an_org(OTHER_ORG))
        assert await bench.store.key_by_hash(f"{77:064x}") is None
        assert await bench.store.key_by_hash("") is None

    async def test_keys_are_listed_by_org_the_newest_first(self, open_store: OpenStore) -> None:
        """In pages; nobody sees another org's."""
        bench = await Bench.opened(open_store)
        keys = {an_id(n): a_key(n) for n in (1, 2, 3)}
        await write_orgs(bench, ORG, OTHER_ORG, keys=keys | {an_id(4): a_key(4, OTHER_ORG)})

        page = await bench.store.keys(ORG, None, 2)
        assert [key.id for key in page] == [an_id(3), an_id(2)]
        assert await bench.store.keys(ORG, an_id(2), 10) == [a_key(1)]
        assert await bench.store.key(OTHER_ORG, an_id(1)) is None
        assert await bench.store.key(ORG, an_id(4)) is None

    async def test_whether_there_are_keys(self, open_store: OpenStore) -> None:
        """An org alone is none; a revoked key is one."""
        bench = await Bench.opened(open_store)
        await write_orgs(bench, ORG)
        assert await bench.store.any_keys() is False

        await bench.write(keys={an_id(1): a_key(revoked_at=START)})
        assert await bench.store.any_keys() is True

    async def test_orgs_are_listed_by_slug(self, open_store: OpenStore) -> None:
        """In pages, in the order of their bytes."""
        bench = await Bench.opened(open_store)
        await write_orgs(bench, "b", "a", "B", "c")

        assert [org.slug for org in await bench.store.orgs("", 3)] == ["B", "a", "b"]
        assert [org.slug for org in await bench.store.orgs("b", 3)] == ["c"]

    async def test_acts_are_listed_by_org_the_newest_first(self, open_store: OpenStore) -> None:
        """As they were written, in pages."""
        bench = await Bench.opened(open_store)
        await write_orgs(bench, ORG, OTHER_ORG, audit=[an_act(1), an_act(2), an_act(3), an_act(1, OTHER_ORG)])

        assert await bench.store.audit(ORG, None, 2) == [an_act(3), an_act(2)]
        assert await bench.store.audit(ORG, 2, 10) == [an_act(1)]
        assert await bench.store.audit(OTHER_ORG, None, 10) == [an_act(1, OTHER_ORG)]
        assert await bench.store.audit("nobody", None, 10) == []

    async def test_what_was_recorded_is_not_replaced(self, open_store: OpenStore) -> None:
        """A second act of the same number is refused, with everything that came with it."""
        bench = await Bench.opened(open_store)
        await write_orgs(bench, ORG, audit=[an_act(1)])
        forged = replace(an_act(1), actor="somebody else")
        forging = bench.write(audit=[forged], keys={an_id(1): a_key()})
        (refusal,) = await asyncio.gather(forging, return_exceptions=True)
        assert isinstance(refusal, Exception)
        assert await bench.store.audit(ORG, None, 10) == [an_act(1)]
        assert await bench.store.any_keys() is False

    async def test_two_nodes_add_to_one_record_without_gaps(self, open_store: OpenStore) -> None:
        """Also while the org itself is being made by both."""
        if not self.shared:
            raise SkipTest("a database of this store has one owner")
        benches = [await Bench.opened(open_store), await Bench.opened(open_store)]

        def add(loaded: Loaded) -> Changes:
            org = loaded.orgs.get(ORG, an_org())
            after = replace(org, audit_seq=org.audit_seq + 1)
            new = set() if ORG in loaded.orgs else {ORG}
            return Changes(orgs={ORG: after}, new_orgs=new, audit=[an_act(after.audit_seq)])

        plans = [bench.run(LoadPlan(orgs={ORG}), add) for bench in benches for _ in range(10)]
        await asyncio.gather(*plans)
        acts = await benches[0].store.audit(ORG, None, 100)
        assert [act.seq for act in acts] == list(range(20, 0, -1))
        assert await benches[1].store.org(ORG) == an_org(audit_seq=20)
