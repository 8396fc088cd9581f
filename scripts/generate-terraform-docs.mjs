// Writes the reference of the Terraform provider into docs/terraform. With --check only tells whether it differs.
import { writeReference } from './reference-pages.mjs'

await writeReference({
  folder: 'docs/terraform',
  entry: 'packages/terraform/src/reference.ts',
  command: 'scripts/generate-terraform-docs.mjs',
})
