import type { ListId } from '@slipway/sdk'

interface ArraySchema {
  items: { properties: object }
}

/** Returns the members of a list's records. The route table carries every schema, so it is loaded only when needed. */
export async function membersOf(route: ListId): Promise<string[]> {
  const { routeOf } = await import('@slipway/contract')
  const answer = routeOf(route).response as unknown as ArraySchema & { properties?: { items: ArraySchema } }
  const list = answer.properties?.items ?? answer
  return Object.keys(list.items.properties)
}
