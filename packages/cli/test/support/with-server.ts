import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type InProcessServer, startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, beforeAll, expect } from 'vitest'
import { freshHome } from './cli.ts'

/**
 * Returns a home, a server for the tests of a file, and the environment to reach it. `toml` is the server's
 * configuration.
 */
export function cliWithServer(toml?: string, flags?: string[]) {
  const { home, base, slipway: runAs, executable, remove } = freshHome()
  const publicKey = join(home, 'key.pub')
  let server: InProcessServer
  let env: Record<string, string>
  beforeAll(async () => {
    writeFileSync(publicKey, `${sshKey}\n`)
    server = await startInProcessServer(toml, flags)
    env = {
      SLIPWAY_API_URL: server.api_url,
      SLIPWAY_ACCESS_KEY: server.access_key,
      SLIPWAY_OPERATOR_KEY: server.operator_key,
      SLIPWAY_PROJECT: server.project_id,
    }
  })
  afterAll(async () => {
    await server?.close()
    remove()
  })

  const slipway = (...words: string[]) => runAs(words, { env })
  return {
    home,
    base,
    publicKey,
    runAs,
    executable,
    slipway,
    /** Returns the JSON output of a command, which must succeed. */
    async json(...words: string[]) {
      const run = await slipway(...words, '-o', 'json')
      expect(run).toMatchObject({ code: 0, stderr: '' })
      return JSON.parse(run.stdout)
    },
    /** Creates a VM with a small GPU. */
    async createVm(name: string, ...words: string[]) {
      const where = ['--type', 'a40.1x', '--location', 'us-east1-a', '--ssh-key', publicKey]
      const run = await slipway('vm', 'create', name, ...where, '--quiet', ...words)
      expect(run).toMatchObject({ code: 0, stderr: '' })
    },
    get server() {
      return server
    },
    get env() {
      return env
    },
  }
}
