// One captured log, as its world would list it.

import { TERMINAL, typed } from './typed.mjs';

const SLOT_DIGITS = 26;

export class Log {
  /** `given` is {run, events, slots}: the run's row, every event in order, and whether ids are dense slots. */
  constructor(given) {
    this.run = typed(given.run);
    this.events = given.events.map((event) => typed(event));
    this.slots = given.slots;
    this.startedAt = +this.run.startedAt;
    const first = this.events[0]?.eventId ?? 'evnt_';
    this.idPrefix = first.slice(0, first.indexOf('_') + 1);
  }

  runRow() {
    return { attributes: {}, ...this.run, status: 'running' };
  }

  /**
   * The first `length` events without the hidden ones (0-based) and without those that end the run: the engine passes
   * over a log that has one. Slots must be dense, so such a log ends before its first end, and is numbered anew where
   * something is hidden.
   */
  first(length, hidden) {
    const kept = [];
    for (let index = 0; index < Math.min(length, this.events.length); index++) {
      const event = this.events[index];
      if (TERMINAL.has(event.eventType)) {
        if (this.slots) break;
        continue;
      }
      if (!hidden.has(index)) kept.push(event);
    }
    if (!this.slots || !hidden.size) return kept;
    return kept.map((event, index) => ({ ...event, eventId: this.slot(index + 1) }));
  }

  slot(number) {
    return this.idPrefix + String(number).padStart(SLOT_DIGITS, '0');
  }

  /** The id of an event that the engine creates, behind all that are there. */
  nextId(place, number) {
    return this.slots ? this.slot(place) : `${this.idPrefix}7ZZZZZZZZZ${String(number).padStart(16, '0')}`;
  }

  /** A text that names slots of a log with hidden events, with the ids that those events really have. */
  named(text, length, hidden) {
    if (!this.slots || !hidden.size || typeof text !== 'string') return text;
    const ids = this.events.filter((_event, index) => index < length && !hidden.has(index)).map((event) => event.eventId);
    const pattern = new RegExp(`${this.idPrefix}(\\d{${SLOT_DIGITS}})`, 'g');
    return text.replace(pattern, (whole, digits) => ids[Number(digits) - 1] ?? whole);
  }
}
