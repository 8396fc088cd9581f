import type { ListId } from '@slipway/sdk'

interface ArraySchema {
  items: { properties: object }
}

/** Returns the field names of a list's rows. The route table is large, so it is loaded only when needed. */
export async function membersOf(route: ListId): Promise<string[]> {
  const { routeOf } = await import('@slipway/contract')
  const schema = routeOf(route).response as unknown as ArraySchema & { properties?: { items: ArraySchema } }
  const list = schema.properties?.items ?? schema
  return Object.keys(list.items.properties)
}
