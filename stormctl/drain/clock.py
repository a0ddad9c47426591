"""Virtual time: timers that go off in their order, and nothing that ever waits."""

from __future__ import annotations

from collections.abc import Callable


class Alarm:
    """Something that is done at a time, unless it is cancelled first."""

    __slots__ = ("act", "at", "cancelled")

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.at, self.act, self.cancelled = at, act, False


class Clock:
    """The time in ms, and what is due. ``until`` is the last time at which anything still goes off."""

    def __init__(self, until: int | None) -> None:
        self.now = 0
        self.until = until
        self._alarms: list[Alarm] = []

    def at(self, ms: int, act: Callable[[], None]) -> Alarm:
        """Set an alarm."""
        alarm = Alarm(ms, act)
        self._alarms.append(alarm)
        return alarm

    @property
    def due(self) -> Alarm | None:
        """The next alarm that will go off; of several for one time the one that was set first."""
        best: Alarm | None = None
        for alarm in self._alarms:
            if not alarm.cancelled and (best is None or alarm.at < best.at):
                best = alarm
        return best if best is not None and (self.until is None or best.at <= self.until) else None

    def fire(self) -> None:
        """Let the next alarm go off."""
        alarm = self.due
        if alarm is not None:
            self._alarms.remove(alarm)
            self.now = max(self.now, alarm.at)
            alarm.act()
