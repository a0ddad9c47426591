// A stub of the SDK for tests of the host: the same doors, and behind them next to nothing.
export function setAttributes() {}
