import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '@slipway/testing/root.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import { missingTerraform, Workspace } from './support/terraform.ts'

test.skipIf(missingTerraform)(
  'the executable of npm run build:terraform works without Node on the PATH',
  async () => {
    const { buildBinary } = await import(pathToFileURL(join(root, 'scripts/packages/binary.mjs')).href)
    const executable: string = await buildBinary('terraform')
    expect(executable).toBe(join(root, 'artifacts/terraform/terraform-provider-slipway'))
    const service = await useService()
    const workspace = new Workspace(
      service,
      service.credentials.access_key,
      join(root, 'artifacts/terraform'),
    )
    try {
      workspace.write(
        'resource "slipway_disk" "it" {\n  name = "data"\n  size = "10GiB"\n  location = "us-east1-a"\n}\n',
      )
      await workspace.apply()
      expect(await workspace.changes()).toEqual({})
      await workspace.destroy()
    } finally {
      workspace.close()
    }
  },
)
