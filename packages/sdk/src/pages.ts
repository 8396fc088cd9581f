import type { RouteId, RouteResponse } from '@slipway/contract'

/** Routes that return a list: paged, complete, or a plain array. */
export type ListId = {
  [Id in RouteId]: RouteResponse<Id> extends { items: unknown[] } | unknown[] ? Id : never
}[RouteId]

export type ListItem<Id extends ListId> =
  RouteResponse<Id> extends { items: (infer Item)[] }
    ? Item
    : RouteResponse<Id> extends (infer Item)[]
      ? Item
      : never

type Page = unknown[] | { items: unknown[]; next_page_token?: string }

/** Loads the next page only after all items of the current page have been used. */
export async function* eachItem(readPage: (pageToken: string) => Promise<Page>): AsyncGenerator<unknown> {
  let pageToken = ''
  do {
    const page = await readPage(pageToken)
    yield* Array.isArray(page) ? page : page.items
    pageToken = Array.isArray(page) ? '' : (page.next_page_token ?? '')
  } while (pageToken)
}
