import { type Access, type Route, tags } from '../route.ts'
import { type RouteId, routeIds, routeOf } from '../routes.ts'
import { pageQuery, type TSchema, Uuid } from '../schema.ts'
import { guide } from './guide.ts'
import { recording } from './recording.ts'
import {
  errorResponse,
  errorsByStatus,
  headerRef,
  headers,
  rateLimitHeaders,
  responseName,
} from './responses.ts'
import { type Json, schemaPrinter } from './schemas.ts'
import { servicePaths, serviceTag } from './service-paths.ts'
import { webhookEntries } from './webhooks.ts'

export interface OpenApiOptions {
  version: string
  /** The URL of the service. The default is a local service. */
  serverUrl?: string
}

/** Builds the OpenAPI 3.1 document from the route table. */
export function buildOpenApi({ version, serverUrl = 'http://127.0.0.1:8080' }: OpenApiOptions): Json {
  const { print, collected } = schemaPrinter()
  const responses: Json = {}
  const parameters: Json = { ...sharedParameters(print) }

  function errorRefs(route: Route): Json {
    const refs: Json = {}
    for (const [status, codes] of errorsByStatus(route)) {
      const name = responseName(codes)
      responses[name] ??= errorResponse(codes)
      refs[status] = { $ref: `#/components/responses/${name}` }
    }
    return refs
  }

  function parameterRefs(route: Route): Json[] {
    const refs: Json[] = []
    for (const name of pathParameters(route.path)) {
      parameters[pascal(name)] ??= {
        name,
        in: 'path',
        required: true,
        description: `The ${isId(name) ? 'id' : 'name'} of the ${resourceNoun(name)}.`,
        schema: isId(name) ? print(Uuid) : { type: 'string' },
        ...(recording.parameters[name] && { example: recording.parameters[name] }),
      }
      refs.push(parameterRef(pascal(name)))
    }
    for (const [name, schema] of Object.entries(route.query?.properties ?? {})) {
      if (name in pageQuery) refs.push(parameterRef(pascal(name)))
      else refs.push(queryParameter(name, schema, route.query?.required?.includes(name) ?? false, print))
    }
    if (route.isTransactional) refs.push(parameterRef('IdempotencyKey'))
    if (route.alsoReturns === 'text/event-stream') refs.push(parameterRef('LastEventId'))
    return [...refs, parameterRef('XRequestId')]
  }

  function operation(id: RouteId): Json {
    const route = routeOf(id)
    const example = recording.routes[id]
    return {
      operationId: id,
      tags: [route.tag],
      summary: route.summary,
      description: [route.description, accessSentence(route)].filter(Boolean).join(' '),
      ...(route.access === 'public' ? { security: [] } : {}),
      parameters: parameterRefs(route),
      ...(route.body && {
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: print(route.body),
              ...(example && { example: example.request }),
            },
          },
        },
      }),
      responses: {
        200: {
          description: 'Success.',
          headers: successHeaders(route),
          content: {
            [route.isText ? 'text/plain' : 'application/json']: {
              schema: print(route.response),
              ...(example && { example: example.response }),
            },
            ...(route.alsoReturns && { [route.alsoReturns]: textResponse(route.alsoReturns) }),
          },
        },
        ...errorRefs(route),
      },
    }
  }

  const paths: Record<string, Json> = {}
  for (const id of routeIds) {
    const { path, method } = routeOf(id)
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation(id) }
  }
  Object.assign(paths, servicePaths(print))
  print({ title: 'Error' })

  return {
    openapi: '3.1.0',
    info: {
      title: 'Slipway API',
      version,
      summary: 'GPU virtual machines on demand',
      description: guide,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    tags: [...Object.entries(tags).map(([name, description]) => ({ name, description })), serviceTag],
    paths,
    webhooks: webhookEntries(print),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An access key, the access token of a user, or an operator key.',
        },
      },
      parameters: sorted(parameters),
      headers,
      responses: sorted(responses),
      schemas: collected(),
    },
  }
}

const pathParameters = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
const isId = (name: string) => name.endsWith('_id')
const resourceNoun = (name: string) =>
  name
    .replace(/_id$/, '')
    .replaceAll('_', ' ')
    .replace(/^(vm|gpu|ssh)\b/, (word) => word.toUpperCase())
const parameterRef = (name: string): Json => ({ $ref: `#/components/parameters/${name}` })
const pascal = (name: string) => name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
const sorted = (map: Json): Json =>
  Object.fromEntries(Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1)))

function queryParameter(
  name: string,
  schema: TSchema,
  required: boolean,
  print: (schema: unknown) => unknown,
): Json {
  const { description, ...printed } = print(schema) as Json
  return {
    name,
    in: 'query',
    required,
    description: description ?? `Only items with this ${name.replaceAll('_', ' ')}.`,
    schema: printed,
  }
}

function sharedParameters(print: (schema: unknown) => unknown): Json {
  return {
    Limit: queryParameter('limit', pageQuery.limit, false, print),
    PageToken: queryParameter('page_token', pageQuery.page_token, false, print),
    IdempotencyKey: {
      name: 'Idempotency-Key',
      in: 'header',
      description:
        'Makes the request safe to retry: within 24 hours, a repeated request gets the first response again.',
      schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
      example: 'b5c1f7e0-create-train-7',
    },
    LastEventId: {
      name: 'Last-Event-ID',
      in: 'header',
      description:
        'The position after which the stream starts. Without this header, the stream contains only new events.',
      schema: { type: 'string' },
      example: '73',
    },
    XRequestId: {
      name: 'X-Request-Id',
      in: 'header',
      description:
        'Your own id for the request: at most 128 visible ASCII characters. The service replaces invalid values.',
      schema: { type: 'string', minLength: 1, maxLength: 128, pattern: '^[!-~]+$' },
      example: 'req-5f0c2d',
    },
  }
}

function successHeaders(route: Route): Json {
  return {
    'X-Request-Id': headerRef('RequestId'),
    ...rateLimitHeaders,
    ...(route.isTransactional && { 'Idempotency-Replayed': headerRef('IdempotencyReplayed') }),
    ...(route.noStore && { 'Cache-Control': headerRef('CacheControl') }),
  }
}

function textResponse(mediaType: 'text/event-stream' | 'text/csv'): Json {
  return mediaType === 'text/csv'
    ? {
        schema: { type: 'string', description: 'A line with the column names, then one line per item.' },
        example: recording.texts[mediaType],
      }
    : {
        schema: {
          type: 'string',
          description:
            '`id:` is the position and `data:` is the event. A comment line is sent every 15 seconds.',
        },
        example: streamed(recording.events['vm.running'] as { position: number }),
      }
}

const streamed = (event: { position: number } | undefined) =>
  event && `id: ${event.position}\ndata: ${JSON.stringify(event)}\n\n`

const accessSentences: Record<Access, string> = {
  public: 'Works without a credential.',
  caller: 'Accepts any valid credential.',
  user: 'Requires the access token of a user; access keys are not accepted.',
  visible:
    'Requires any role in the organization, or an access key of the organization or of one of its projects.',
  viewer: 'Requires the role `viewer` or an access key.',
  member: 'Requires the role `member` or a key with the role `write`.',
  admin: 'Requires the role `admin`.',
  owner: 'Requires the role `owner`.',
  operator: 'Requires the access token of an operator, or an operator key.',
}

function accessSentence(route: Route): string {
  if (route.access === 'viewer' && route.path.startsWith('/v0.1/organizations/'))
    return 'Requires the role `viewer`.'
  const sentence = accessSentences[route.access]
  return route.alsoWriteKeys ? sentence.replace(/\.$/, ' or a key with the role `write`.') : sentence
}
