import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { certificateFinding } from '../../src/engines/incus/operate/certificate-finding.ts'
import { incusConfig } from '../support/incus/config.ts'

const dir = mkdtempSync(join(tmpdir(), 'swi-'))
afterAll(() => rmSync(dir, { recursive: true }))
const fixture = (name: string) => join(import.meta.dirname, '../support/fixtures/tls', name)
const keyFile = join(dir, 'client.key')
copyFileSync(fixture('second.key'), keyFile)
chmodSync(keyFile, 0o600)
/** The certificate is valid until 22 October 2126. */
const certFile = fixture('second.crt')
const config = (changes = {}) =>
  incusConfig({
    urls: ['https://192.0.2.1:8443'],
    ...{ client_cert_file: certFile, client_key_file: keyFile, server_cert_file: fixture('first.crt') },
    ...changes,
  })
const at = (date: string) => Date.parse(`${date}T00:00:00Z`)

test.each([
  ['2026-12-01', 'ok', /valid until Oct 22 .* 2126/],
  ['2126-09-22', 'ok', /valid until/],
  ['2126-09-24', 'warning', /expires on Oct 22/],
  ['2126-10-24', 'problem', /expired on Oct 22/],
])('on %s, the client certificate is %s', async (date, verdict, text) => {
  const finding = await certificateFinding(config(), at(date))
  expect(finding).toMatchObject({ verdict, text: expect.stringMatching(text) })
  if (verdict !== 'ok') expect(finding.fixes.join()).toContain('slipway-server incus init --address')
})

test('a key that other users can read, a missing file and an unpinned server are reported', async () => {
  const now = at('2026-12-01')
  chmodSync(keyFile, 0o640)
  expect(await certificateFinding(config(), now)).toMatchObject({
    ...{ verdict: 'problem', text: `other users can read ${keyFile}`, fixes: [`chmod 600 ${keyFile}`] },
  })
  chmodSync(keyFile, 0o600)
  const missing = join(dir, 'missing.key')
  expect(await certificateFinding(config({ client_key_file: missing }), now)).toMatchObject({
    ...{ verdict: 'problem', text: `the file ${missing} does not exist` },
  })
  expect(await certificateFinding(config({ server_cert_file: '' }), now)).toMatchObject({
    ...{ verdict: 'warning', fixes: [expect.stringContaining('server_cert_file')] },
  })
})
