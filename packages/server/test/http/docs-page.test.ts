import { routeIds } from '@slipway/contract'
import { buildOpenApi } from '@slipway/contract/openapi'
import { deliveredTypes } from '@slipway/contract/openapi/webhooks'
import { expect, test } from 'vitest'
import { docsPage, docsSecurityPolicy } from '../../src/http/docs/page.ts'
import { docsStyle } from '../../src/http/docs/style.ts'
import { docsScript } from '../../src/http/docs/try.ts'

const openApi = buildOpenApi({ version: '0.1.0', serverUrl: 'https://gpu.example.org' })
const page = docsPage(openApi)
const all = (pattern: RegExp) => [...page.matchAll(pattern)].map((match) => match[1] as string)
const ids = all(/ id="([^"]+)"/g)

test('the docs page has a section for every endpoint, and no broken links', () => {
  for (const id of routeIds) expect(ids).toContain(id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const target of all(/href="#([^"]+)"/g)) expect(ids).toContain(target)
})

test('the docs page loads only its own style sheet and script, and contains no inline code', () => {
  expect(all(/<link[^>]* href="([^"]+)"/g)).toEqual(['/docs/style.css'])
  expect(all(/<script([^>]*)>/g)).toEqual([' src="/docs/try.js" defer'])
  expect(page).not.toMatch(/<img|<iframe|\sstyle=|\son\w+=/i)
  expect(docsScript).not.toMatch(/innerHTML|eval|localStorage|sessionStorage|https?:/)
  expect(docsStyle).not.toMatch(/url\(|@import/)
  expect(docsSecurityPolicy).not.toMatch(/unsafe|https?:/)
})

test('the docs page shows a curl command with URL, credential, Idempotency-Key and body for a write', () => {
  const section = page.slice(page.indexOf('id="vmCreate"'), page.indexOf('id="vmList"'))
  expect(section).toContain('https://gpu.example.org/v0.1/projects/$PROJECT_ID/vms')
  expect(section).toContain('Authorization: Bearer $SLIPWAY_TOKEN')
  expect(section).toContain('Idempotency-Key')
  expect(section).toContain('train-7')
})

test('the docs page lists every webhook event with an example', () => {
  const section = page.slice(page.indexOf('id="webhooks"'), page.indexOf('id="records"'))
  for (const type of deliveredTypes) expect(section.replaceAll('<wbr>', '')).toContain(`<code>${type}</code>`)
  expect(section).toContain('&quot;operation_id&quot;')
})

test('the docs page shows a public endpoint without a credential', () => {
  const section = page.slice(page.indexOf('id="authToken"'), page.indexOf('id="authRevoke"'))
  expect(section).not.toContain('Authorization: Bearer')
})

test('the docs page shows text of the OpenAPI document as text, never as markup', () => {
  const hostile = structuredClone(openApi) as { info: { title: string; description: string } }
  hostile.info.title = '<script>alert(1)</script>'
  hostile.info.description = 'a `<b>` & "c"'
  const shown = docsPage(hostile)
  expect(shown).not.toContain('<script>')
  expect(shown).toContain('a <code>&lt;b&gt;</code> &amp; &quot;c&quot;')
})
