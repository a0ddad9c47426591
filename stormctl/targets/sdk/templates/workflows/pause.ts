// What the bodies of steps share. A step runs in the host, so real timers are allowed here and nowhere else.

/** Let so many milliseconds pass. */
export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A tag, filled up to so many bytes: what a step's result weighs. */
export const padded = (tag: string, size: number): string => tag.padEnd(size, '.');

/** A fixed delay for an index: the base and 0 to 9 tenths of the jitter, shuffled, whole milliseconds. */
export const spread = (baseMs: number, jitterMs: number, index: number): number =>
  baseMs + Math.floor((((7 * index) % 10) * jitterMs) / 10);
