"""The cycle of a loop: feed, event drain, settle, advance, wave, re-arm."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from stormctl.drain.drain import CANCELLED, SPACE, Pass, at_once, reach
from stormctl.drain.engine import Entry
from stormctl.drain.knobs import Ghosts
from stormctl.drain.marks import write_mark
from stormctl.drain.space import Space, WaveSeen
from stormctl.drain.tenure import Contribution, Notice, OpenWave, Tenure
from stormctl.sim.kernel import Label, Pick, Wait
from stormctl.sweeps.drain.records import Dispatch, Effects, Rest, Wave

Turns = Generator[Label | Wait | Pick, Any, None]


def serve(tenure: Tenure) -> Turns:
    """The loop of a tenure, until it is parked."""
    while tenure.alive():
        tenure.woken = False
        yield Label("cycle", SPACE, writes=True)
        if not tenure.alive():
            break
        yield from _cycle(tenure)
        if not tenure.alive() or tenure.has_work:
            continue
        idle = tenure.idle_park()
        tenure.note(_rest(tenure))
        yield Wait(Label("wake", SPACE, writes=True), lambda: tenure.due, "input")
        idle.cancelled = True


def _rest(tenure: Tenure) -> Rest:
    free = tuple(one for one in tenure.space.pending_idents if one[1] not in tenure.in_flight)
    return Rest(tenure.scan_owed or tenure.woken, tenure.backstop is not None, len(tenure.feed), free)


def _cycle(tenure: Tenure) -> Turns:
    space, counters = tenure.space, tenure.space.counters
    batch_head = tenure.drain_feed()
    drained = yield from Pass(tenure).run()
    if drained is CANCELLED:
        return
    exhausted = yield from _settle(tenure)
    counters.exhausted += exhausted
    wave = tenure.wave
    if not tenure.alive() or wave is None:
        return
    target, settled = _advance(tenure, batch_head, exhausted=exhausted)
    advances = not exhausted and target > tenure.w
    if not advances and not wave.contributions:
        return  # a cycle without a delta commits nothing
    wave.target = target if advances else None
    yield from reach(tenure, "A5")
    yield from reach(tenure, "A6")
    if not tenure.alive():
        return
    tenure.wave = OpenWave()
    yield from reach(tenure, "A7")
    yield from reach(tenure, "A8")
    if not tenure.alive():
        tenure.view.release(wave)  # the park has the lease already: the wave is abandoned
        return
    committed = _commit(tenure, wave, exhausted=exhausted, settled=settled and advances)
    yield from reach(tenure, "A9")
    if not tenure.alive():
        tenure.view.release(wave)
        return
    _outcome(tenure, wave, committed)
    if committed.requeued or ((drained or committed.seq) and space.engine.pending()):
        tenure.scan_owed = True
    if not committed.seq:
        return
    tenure.own_seqs.add(committed.seq)
    if committed.content:
        tenure.latch = True
    elif settled:
        tenure.latch = False
    if wave.target is not None:
        tenure.w = wave.target
        tenure.own_seqs = {seq for seq in tenure.own_seqs if seq > tenure.w}
    if tenure.knobs.echo_wakes:
        tenure.tell(Notice(committed.seq, own=True))


def _settle(tenure: Tenure) -> Generator[Label | Wait | Pick, Any, bool]:
    """Flush everything and wait until nothing arrives and no handler is queued. Whether the deadline cut it."""
    yield Label("settle", SPACE, writes=True)
    tenure.transport.flush()
    if "cut" in (yield from at_once(tenure, "settle")):
        return True

    def idle() -> bool:
        return not tenure.transport.wire and not tenure.queue

    while True:
        yield Wait(Label("idle", SPACE, writes=True), idle, "handlers and frames")
        if not tenure.transport.dirty:
            return False
        tenure.transport.flush()


def _advance(tenure: Tenure, batch_head: int, *, exhausted: bool) -> tuple[int, bool]:
    """How far the watermark may go, and whether it goes there over own seqs (the settle advance)."""
    knobs, w = tenure.knobs, tenure.w
    shadow = tenure.view.shadow_floor
    seen = batch_head if shadow is None else min(batch_head, shadow - 1)
    held = seen if tenure.floor is None or not knobs.floor_input else min(seen, tenure.floor - 1)
    to = w if exhausted else max(w, held)
    if not exhausted and seen < batch_head and batch_head > w:
        tenure.space.counters.watermark_clamped += 1
    wave = tenure.wave
    busy = exhausted or not tenure.latch or tenure.feed or tenure.scan_owed
    if busy or wave is None or wave.contributions or (knobs.floor_settle and tenure.floor is not None):
        return to, False
    tail = base = max(w, to)
    while tail + 1 in tenure.own_seqs:
        tail += 1
    return (max(to, tail), True) if tail > base else (to, False)


# -- handlers --------------------------------------------------------------------------------------------------------


def handle(tenure: Tenure) -> Turns:
    """The scheduler of a tenure's runtime: it runs what was queued, each handler whole."""
    space = tenure.space
    while True:
        yield Wait(Label("handle", SPACE, writes=True), lambda: bool(tenure.queue), "an event")
        target = tenure.queue.popleft()
        event_id = target.ident[0] or ""
        tenure.note(Dispatch(event_id, target.ident[1]))
        space.called.append(event_id)
        if tenure.wave is None:  # parked: there is nowhere to seal to, and the writes are committed without the mark
            seq = space.engine.effects(event_id)
            tenure.note(Effects(seq, event_id, target.ident[1]))
        else:
            write_mark(tenure, tenure.wave, target, skip=False)


# -- the commit ------------------------------------------------------------------------------------------------------


class Committed:
    """What became of a wave: its seq (0: it was refused), what was thrown back, and how much went in."""

    __slots__ = ("content", "kept", "requeued", "seq")

    def __init__(self) -> None:
        self.seq = 0
        self.kept: list[Contribution] = []
        self.requeued: list[Contribution] = []
        self.content = 0


def _commit(tenure: Tenure, wave: OpenWave, *, exhausted: bool, settled: bool) -> Committed:
    """Commit a wave. A contribution whose path was written meanwhile is thrown back whole; the watermark is not."""
    space = tenure.space
    engine, done = space.engine, Committed()
    space.counters.waves += 1
    for one in wave.contributions:
        (done.requeued if engine.conflicts(one.mark) else done.kept).append(one)
    if any(one.mark.add for one in done.kept) and space.knobs.ghosts is Ghosts.REFUSE:
        done.requeued, done.kept, wave.target = wave.contributions, [], None
    if done.requeued and not space.knobs.advance_on_requeue:
        wave.target = None
    before = engine.watermark
    if not done.kept and wave.target is None:
        requeued = tuple(one.target.ident for one in done.requeued)
        tenure.note(Wave(0, before, before, exhausted, 0, requeued=requeued, sidecars=engine.snapshot()))
        return done
    done.seq = seq = engine.commit()
    emitted = tuple(emit for one in done.kept for emit in one.emits)
    done.content = len(done.kept)
    engine.apply([one.mark for one in done.kept], emitted, seq)
    engine.log.extend(event for one in done.kept for event in one.effects)
    if wave.target is not None:
        engine.watermark = max(engine.watermark, wave.target)
    for doc in sorted({one.mark.doc for one in done.kept} | {doc for doc, _ in emitted}):
        space.touched(doc)
    tenure.note(
        Wave(
            seq,
            before,
            engine.watermark,
            exhausted,
            done.content,
            tuple(
                (one.mark.doc, one.mark.at, one.target.ident[0] or "", one.target.ident[1])
                for one in done.kept
                if not one.mark.elided
            ),
            tuple(one.target.ident for one in done.kept if one.effects),
            tuple(one.target.ident for one in done.kept if one.skip),
            tuple(one.target.ident for one in done.requeued),
            emitted,
            settled,
            engine.snapshot(),
        )
    )
    space.waves.append(WaveSeen(space, seq))
    return done


def _outcome(tenure: Tenure, wave: OpenWave, done: Committed) -> None:
    """The wave's layers leave the view, what was accepted stays confirmed, and the guards are released."""
    tenure.view.release(wave)
    for one in done.kept:
        if not one.mark.add and not one.mark.elided:
            tenure.view.promote(one.mark.doc, one.mark.at, Entry(*one.target.ident))
    for one in (*done.kept, *done.requeued):
        tenure.release_guard(one.target.ident[0])


__all__ = ["Space", "handle", "serve"]
