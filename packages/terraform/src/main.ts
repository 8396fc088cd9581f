import { Provider } from './provider.ts'
import { servePlugin } from './wire/plugin.ts'

servePlugin(new Provider(process.env), process.env).catch((error) => {
  process.stderr.write(`Cannot start the provider: ${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
})
