import { type Client, createClient, type TokenSource } from '@slipway/sdk'
import { version } from '../version.ts'
import { lightFetch } from './fetch.ts'

/** Returns a client of the service at an address. */
export const clientOf = (baseUrl: string, token: TokenSource | undefined): Client =>
  createClient({ baseUrl, token, fetch: lightFetch, userAgent: `slipway-cli/${version}` })
