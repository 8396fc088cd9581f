import type { IncusContext } from './context.ts'

/**
 * Networks are shared with other projects, because a host has only one set of bridges. Everything else
 * belongs to the project.
 */
const features = {
  ...{ 'features.networks': 'false', 'features.images': 'true', 'features.profiles': 'true' },
  ...{ 'features.storage.volumes': 'true', 'user.slipway': 'true' },
}

/** Creates the Incus project that holds all objects of Slipway. Returns whether it was missing. */
export async function ensureProject({ client, config }: IncusContext, signal: AbortSignal): Promise<boolean> {
  const path = `/1.0/projects/${config.project}`
  if (await client.find(path, { signal })) return false
  const body = { name: config.project, description: 'Slipway', config: features }
  await client.change('POST', '/1.0/projects', body, { signal }).catch(async (error) => {
    if (!(await client.find(path, { signal }))) throw error
  })
  return true
}
