import type { IncusContext } from './context.ts'

/** Networks are the host's, which has one set of bridges; everything else is ours alone. */
const features = {
  ...{ 'features.networks': 'false', 'features.images': 'true', 'features.profiles': 'true' },
  ...{ 'features.storage.volumes': 'true', 'user.slipway': 'true' },
}

/** Makes the Incus project in which everything of ours lives. Returns whether it was missing. */
export async function ensureProject({ client, config }: IncusContext, signal: AbortSignal): Promise<boolean> {
  const path = `/1.0/projects/${config.project}`
  if (await client.find(path, { signal })) return false
  const body = { name: config.project, description: 'Slipway', config: features }
  await client.change('POST', '/1.0/projects', body, { signal }).catch(async (error) => {
    if (!(await client.find(path, { signal }))) throw error
  })
  return true
}
