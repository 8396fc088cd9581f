import Type from 'typebox'
import { record } from '../schema.ts'
import { recording } from './recording.ts'
import { headerRef } from './responses.ts'
import type { Json } from './schemas.ts'

export const serviceTag = {
  name: 'Service',
  description: 'Health, metrics and this document.',
}

const Health = record('Health', { status: Type.Enum(['ok']) }, { description: 'The process is running.' })
const Readiness = record('Readiness', {
  status: Type.Enum(['ready']),
  engines: Type.Array(
    Type.Object({
      location: Type.String(),
      engine: Type.Enum(['simulated', 'qemu', 'incus']),
      is_answering: Type.Boolean({
        description: 'Whether a worker has read the complete inventory of the engine within the last minute.',
      }),
    }),
  ),
})

interface ServiceEndpoint {
  operationId: string
  summary: string
  description: string
  mediaType: string
  schema: object
  example?: unknown
  errors: number[]
}

const endpoints: Record<string, ServiceEndpoint> = {
  '/healthz': {
    operationId: 'healthz',
    summary: 'Check that the process is running',
    description: 'Returns 200 while the process can respond. Does not use the database.',
    mediaType: 'application/json',
    schema: Health,
    example: { status: 'ok' },
    errors: [405],
  },
  '/readyz': {
    operationId: 'readyz',
    summary: 'Check that the service is ready',
    description:
      'Writes to the database, and returns 503 within 2 seconds if the write fails or takes longer. An unavailable engine is listed in the response and affects only its location.',
    mediaType: 'application/json',
    schema: Readiness,
    example: JSON.parse(recording.texts['/readyz'] ?? 'null'),
    errors: [405, 429, 503],
  },
  '/metrics': {
    operationId: 'metrics',
    summary: 'Read metrics in the Prometheus text format',
    description:
      'Requires the bearer token from the configuration, except for requests from a loopback address without a forwarding header.',
    mediaType: 'text/plain',
    schema: { type: 'string' },
    example: recording.texts['/metrics'],
    errors: [401, 405, 429],
  },
  '/openapi.json': {
    operationId: 'openapiGet',
    summary: 'Read this document',
    description: 'The OpenAPI 3.1 document of this service.',
    mediaType: 'application/json',
    schema: { type: 'object' },
    errors: [405, 429],
  },
}

const commonErrors: Record<number, string> = {
  401: 'Unauthenticated',
  405: 'MethodNotAllowed',
  429: 'RateLimited',
  503: 'Unavailable',
}

export function servicePaths(print: (schema: unknown) => unknown): Json {
  return Object.fromEntries(
    Object.entries(endpoints).map(([path, endpoint]) => [
      path,
      {
        get: {
          operationId: endpoint.operationId,
          tags: [serviceTag.name],
          summary: endpoint.summary,
          description: endpoint.description,
          security: [],
          responses: {
            200: {
              description: 'Success.',
              headers: { 'X-Request-Id': headerRef('RequestId') },
              content: {
                [endpoint.mediaType]: {
                  schema: print(endpoint.schema),
                  ...(endpoint.example === undefined ? {} : { example: endpoint.example }),
                },
              },
            },
            ...Object.fromEntries(
              endpoint.errors.map((status) => [
                status,
                { $ref: `#/components/responses/${commonErrors[status]}` },
              ]),
            ),
          },
        },
      },
    ]),
  )
}
