export function setWorld(world) {
  globalThis.stubWorld = world;
}

export async function getWorld() {
  if (process.env.STUB_MISFIT) {
    throw new Error('This Workflow runtime supports Worlds with spec version 6 through 7, but this one declares 5');
  }
  return globalThis.stubWorld;
}
