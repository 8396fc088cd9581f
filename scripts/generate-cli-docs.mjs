// Writes the reference of the command line into docs/cli. With --check only tells whether it differs.
import { writeReference } from './reference-pages.mjs'

await writeReference({
  folder: 'docs/cli',
  entry: 'packages/cli/src/reference.ts',
  command: 'scripts/generate-cli-docs.mjs',
})
