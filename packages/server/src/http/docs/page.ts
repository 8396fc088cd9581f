import { escapeHtml } from '../escape-html.ts'
import {
  alternativesOf,
  bodyFields,
  fieldTable,
  inline,
  reachableRecords,
  recordSection,
  type Schema,
  type Schemas,
  typeLabel,
} from './fields.ts'
import { type Webhooks, webhookSection } from './webhooks.ts'

/** The page loads its own style sheet and script only, and connects to this service only. */
export const docsSecurityPolicy =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface Media {
  schema: Schema
  example?: unknown
}
interface ResponseObject {
  $ref?: string
  description: string
  content?: Record<string, Media & { examples?: Record<string, unknown> }>
}
interface Parameter {
  $ref?: string
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: Schema
}
interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security?: unknown[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, ResponseObject>
}
interface OpenApi {
  info: { title: string; version: string; summary: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Webhooks
  components: {
    schemas: Schemas
    parameters: Record<string, Parameter>
    responses: Record<string, ResponseObject>
  }
}
interface Endpoint extends Operation {
  method: string
  path: string
}

export function docsPage(openApi: object): string {
  const document = openApi as OpenApi
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )
  const groups = document.tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter((endpoint) => endpoint.tags.includes(tag.name)),
  }))
  const { schemas } = document.components
  const records = reachableRecords(
    endpoints.flatMap((endpoint) => [
      ...Object.values(mediaOf(endpoint)).map((media) => media.schema),
      ...Object.values(endpoint.requestBody?.content ?? {}).flatMap(({ schema }) =>
        alternativesOf(schema, schemas),
      ),
    ]),
    schemas,
  )
  const { title, version, summary, description } = document.info

  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="stylesheet" href="/docs/style.css">
<script src="/docs/try.js" defer></script>
</head>
<body>
<header class="top"><a class="brand" href="#top">slipway</a><span class="version">API ${escapeHtml(version)}</span><label class="key" hidden><span>Key</span><input id="key" type="password" aria-label="Key" autocomplete="off" placeholder="slp_… to try calls"></label><a class="to-contents" href="#contents">Contents</a><a class="raw" href="/openapi.json">openapi.json</a></header>
<nav id="contents" aria-label="Contents"><a class="guide" href="#top">Guide</a>${groups.map(railGroup).join('')}<a class="guide" href="#webhooks">Webhooks</a><a class="guide" href="#records">Records</a></nav>
<main id="top">
<div class="intro"><h1>${escapeHtml(title)}</h1><p class="lead">${inline(summary)}</p>${guideText(description)}</div>
${groups.map((group) => groupSection(group, document)).join('\n')}
${webhookSection(document.webhooks)}
<section class="group" id="records"><h2>Records</h2><p>The records in responses. Every field is always present, unless a description says otherwise.</p></section>
${records.map((name) => recordSection(name, schemas)).join('\n')}
</main>
</body>
</html>
`
}

interface Group {
  name: string
  description: string
  endpoints: Endpoint[]
}

const groupId = (name: string) => `group-${name.toLowerCase()}`
const method = (name: string) => `<span class="method ${name.toLowerCase()}">${name}</span>`

function railGroup({ name, endpoints }: Group): string {
  const links = endpoints.map(
    (endpoint) =>
      `<li><a href="#${endpoint.operationId}">${method(endpoint.method)}<span>${escapeHtml(endpoint.summary)}</span></a></li>`,
  )
  return `<details><summary>${name}</summary><ul>${links.join('')}</ul></details>`
}

function guideText(text: string): string {
  return text
    .split('\n\n')
    .map((block) =>
      block.startsWith('## ') ? `<h2>${inline(block.slice(3))}</h2>` : `<p>${inline(block)}</p>`,
    )
    .join('')
}

function groupSection({ name, description, endpoints }: Group, document: OpenApi): string {
  return `<section class="group" id="${groupId(name)}"><h2><a class="anchor" href="#${groupId(name)}">${name}</a></h2><p>${inline(description)}</p></section>
${endpoints.map((endpoint) => endpointSection(endpoint, document)).join('\n')}`
}

function endpointSection(endpoint: Endpoint, document: OpenApi): string {
  const { schemas } = document.components
  const body = endpoint.requestBody?.content['application/json']
  const responses = Object.entries(mediaOf(endpoint))
  const path = escapeHtml(endpoint.path)
    .replaceAll('/', '<wbr>/')
    .replace(/\{\w+\}/g, '<i>$&</i>')
  return `<section class="endpoint" id="${endpoint.operationId}"${tryData(endpoint, document)}>
<h3><a class="anchor" href="#${endpoint.operationId}">${escapeHtml(endpoint.summary)}</a></h3>
<p class="route">${method(endpoint.method)}<code>${path}</code></p>
<div class="columns"><div class="facts">
<p>${inline(endpoint.description)}</p>
${parameterTable(endpoint, document)}
${body ? `<h4>Request body</h4>${bodyFields(body.schema, schemas)}` : ''}
<h4>Response</h4><ul class="answers">${responses
    .map(([type, { schema }]) => `<li>${typeLabel(schema, schemas)} <span class="quiet">${type}</span></li>`)
    .join('')}</ul>
${errorTable(endpoint, document)}
</div><div class="samples">
${sample('Request', curl(endpoint, document.servers[0]?.url ?? ''))}
${responses.map(([type, { example }]) => (example === undefined ? '' : sample(`Response · ${type}`, exampleText(example)))).join('')}
</div></div>
</section>`
}

/** Returns the `data-` attributes that the page's script (`try.ts`) reads. */
function tryData(endpoint: Endpoint, document: OpenApi): string {
  const query = (endpoint.parameters ?? [])
    .map((entry) => resolve(entry, document.components.parameters))
    .filter((parameter) => parameter.in === 'query')
  const body = endpoint.requestBody?.content['application/json']?.example
  const data = {
    method: endpoint.method,
    path: endpoint.path,
    query: query.map(({ name }) => name).join(','),
    body: body === undefined ? '' : JSON.stringify(body, null, 2),
  }
  return Object.entries(data)
    .filter(([, value]) => value)
    .map(([name, value]) => ` data-${name}="${escapeHtml(value)}"`)
    .join('')
}

const mediaOf = (endpoint: Endpoint) => endpoint.responses['200']?.content ?? {}
const exampleText = (example: unknown) =>
  typeof example === 'string' ? example : JSON.stringify(example, null, 2)
const sample = (title: string, text: string) =>
  `<figure><figcaption>${title}</figcaption><pre tabindex="0"><code>${escapeHtml(text.trimEnd())}</code></pre></figure>`

const resolve = <T extends { $ref?: string }>(entry: T, from: Record<string, T>): T =>
  entry.$ref ? (from[entry.$ref.slice(entry.$ref.lastIndexOf('/') + 1)] as T) : entry

const parameterKinds = { path: 'Path', query: 'Query', header: 'Headers' }

function parameterTable(endpoint: Endpoint, document: OpenApi): string {
  const parameters = (endpoint.parameters ?? []).map((entry) =>
    resolve(entry, document.components.parameters),
  )
  return Object.entries(parameterKinds)
    .map(([kind, title]) => {
      const fields = parameters
        .filter((parameter) => parameter.in === kind && parameter.name !== 'X-Request-Id')
        .map(({ name, schema, description, required }) => ({
          name,
          schema: { ...schema, ...(description ? { description } : {}) },
          isRequired: required ?? false,
        }))
      if (fields.length === 0) return ''
      return `<h4>${title}</h4>${fieldTable(fields, document.components.schemas, kind === 'query')}`
    })
    .join('')
}

function errorTable(endpoint: Endpoint, document: OpenApi): string {
  const rows = Object.entries(endpoint.responses)
    .filter(([status]) => status !== '200')
    .map(([status, response]) => {
      const { description } = resolve(response, document.components.responses)
      return `<tr><th scope="row">${status}</th><td>${inline(description)}</td></tr>`
    })
  return `<details class="errors"><summary>Errors</summary><table><tbody>${rows.join('')}</tbody></table></details>`
}

function curl(endpoint: Endpoint, serverUrl: string): string {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`)
  const lines = [`curl ${endpoint.method === 'GET' ? '' : `-X ${endpoint.method} `}"${serverUrl}${path}"`]
  if (endpoint.security === undefined) lines.push('-H "Authorization: Bearer $SLIPWAY_TOKEN"')
  if (endpoint.parameters?.some((entry) => entry.$ref?.endsWith('/IdempotencyKey'))) {
    lines.push('-H "Idempotency-Key: $(uuidgen)"')
  }
  const body = endpoint.requestBody?.content['application/json']?.example
  if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'")
    lines.push(`-d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')}'`)
  }
  return lines.join(' \\\n  ')
}
