// Writes the command line reference to docs/cli. With --check, only reports whether it is out of date.
import { writeReference } from './reference-pages.mjs'

await writeReference({
  folder: 'docs/cli',
  entry: 'packages/cli/src/reference.ts',
  command: 'scripts/generate-cli-docs.mjs',
})
