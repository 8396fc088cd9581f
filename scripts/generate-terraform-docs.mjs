// Writes the Terraform provider reference to docs/terraform. With --check, only reports whether it is out of
// date.
import { writeReference } from './reference-pages.mjs'

await writeReference({
  folder: 'docs/terraform',
  entry: 'packages/terraform/src/reference.ts',
  command: 'scripts/generate-terraform-docs.mjs',
})
