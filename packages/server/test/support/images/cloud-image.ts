import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { packagesOf, setUpScript } from '../../../src/engines/qemu/gpu-image/recipe.ts'
import { buildGpuImage } from '../../../src/engines/qemu/index.ts'

/**
 * The image of `slipway-server images build gpu`, without the driver: UEFI, systemd, OpenSSH and cloud-init, like the cloud
 * images of distributions. Building takes minutes, so the image is built once for each recipe and kept.
 */
export async function cloudImage(cacheDir: string): Promise<string> {
  const arch = hostArchitecture()
  const recipe = { hasDriver: false, hasToolkit: false, packages: [] }
  const hash = createHash('sha256')
    .update(JSON.stringify([packagesOf(arch, recipe), setUpScript(arch, recipe, false)]))
    .digest('hex')
    .slice(0, 8)
  const output = join(cacheDir, `debian-gpu-${arch.name}-${hash}.qcow2`)
  if (await stat(output).catch(() => null)) return output
  await buildGpuImage({ output, suite: 'bookworm', mirrors: {}, hasDriver: false, packages: [] }, () => {})
  return output
}
