// hook-storm: branches race a hook against a watchdog, and the hooks are resumed around the time it fires.

import { playHookRounds, raceHook, type StormInput } from './storm_parts';

export async function hookStormReproWorkflow(input: StormInput) {
  'use workflow';
  return playHookRounds(input, raceHook);
}
