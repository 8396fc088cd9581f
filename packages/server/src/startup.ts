import type { Config } from './config/index.ts'
import { EngineError } from './engines/engine.ts'
import { isDatabaseRefusal, isDatabaseUnavailable } from './postgres/database.ts'
import { EmbeddedError } from './postgres/embedded/index.ts'
import { NewerSchemaError, OlderSchemaError } from './postgres/migrate.ts'
import { AddressTaken, type Server } from './server.ts'
import { credentialsPath, readCredentials } from './setup/credentials-file.ts'
import { offerSetupCode, seedDemo } from './setup/demo.ts'
import { listServerUrls } from './store/fleet/servers.ts'

export { startServer } from './server.ts'

/** Returns the message for errors that an operator can fix. Other errors are bugs and show their stack. */
export function expectedReason(error: unknown, config: Config): string | undefined {
  const { server, database } = config
  const expected = [EmbeddedError, NewerSchemaError, OlderSchemaError, EngineError, AddressTaken]
  if (expected.some((type) => error instanceof type)) return (error as Error).message
  if (!(error instanceof Error)) return undefined
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === 'listen' || (syscall === 'getaddrinfo' && database.urls.length === 0))
    return `cannot listen on ${server.host}:${server.port} (${code}): choose another address with --host and --port`
  if (database.urls.length > 0 && (isDatabaseUnavailable(error) || isDatabaseRefusal(error)))
    return `the database that is set by ${database.source} cannot be used: ${error.message}`
  return undefined
}

/** Prints how to use the service. */
export async function printInstructions(config: Config, server: Server): Promise<void> {
  const url = server.services.publicUrl()
  const { dataDir } = config.server
  const others = (await listServerUrls(server.services.database)).filter((each) => each !== url)
  if (others.length > 0 && config.server.role === 'all') {
    const shared = config.database.urls.length > 0 ? 'database' : `data directory ${dataDir}`
    console.log(
      `\n  Slipway is already running at ${others.join(' and ')}. This server shares its ${shared}.`,
    )
  }
  if (!config.isDemo) {
    const code = await offerSetupCode(server.services.database)
    console.log(`\n  Slipway is ready at ${url}`)
    if (code)
      console.log(
        `  Setup code for the first operator (shown only once, valid for one day): ${code}\n  Use it at ${url}/setup`,
      )
    return
  }
  const before = await readCredentials(dataDir)
  const credentials = await seedDemo(server.services, { api: url, console: url })
  console.log(`\n  Slipway is ready.`)
  if (!credentials) return console.log(`  API  ${url}\n`)
  const file = credentialsPath(dataDir)
  const people = [credentials.email, credentials.operator_email].filter(Boolean).join(' or ')
  console.log(`
  Console     ${credentials.console_url}   (${people}, passwords in ${file})
  Project     ${credentials.project_id}`)
  // A supervisor may keep this output in its logs, so the key is printed only once.
  if (before?.access_key === credentials.access_key) return console.log(`  Access key  in ${file}\n`)
  console.log(`  Access key  ${credentials.access_key}   (shown only once)

  curl -H "Authorization: Bearer ${credentials.access_key}" ${credentials.api_url}/v0.1/projects/${credentials.project_id}/availabilities
`)
}
