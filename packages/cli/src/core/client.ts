import { type Client, createClient, type TokenSource } from '@slipway/sdk'
import { createLevers, type Levers } from '@slipway/sdk/levers'
import { version } from '../version.ts'
import { lightFetch } from './fetch.ts'

const optionsOf = (baseUrl: string, token: TokenSource | undefined) => ({
  baseUrl,
  token,
  fetch: lightFetch,
  userAgent: `slipway-cli/${version}`,
})

/** Returns a client for the service at a URL. */
export const clientOf = (baseUrl: string, token: TokenSource | undefined): Client =>
  createClient(optionsOf(baseUrl, token))

/** Returns the development controls of the service at a URL. */
export const leversOf = (baseUrl: string, token: TokenSource): Levers =>
  createLevers(optionsOf(baseUrl, token))
