import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../src/root.ts'

/**
 * The packages that `npm start` installs: every package of the lock file that is not only for development, and that
 * fits this machine.
 */
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { dev?: boolean; link?: boolean }>
}
const installed = Object.entries(packages)
  .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
  .map(([path]) => path)
  .filter((path) => existsSync(join(root, path)))

/**
 * Returns the sizes of the files in a folder, by inode, because a file with two names takes its space once. Nested packages
 * are left out: the lock file lists them separately.
 */
function sizesIn(folder: string): [number, number][] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sizesIn(path)
    const { ino, size } = lstatSync(path)
    return [[ino, size] as [number, number]]
  })
}

// 210 MB of files take less than 250 MB on a disk with blocks of 4 KiB.
test('npm start installs at most 175 packages with 210 MB together', () => {
  expect(installed.length).toBeLessThanOrEqual(175)
  const sizes = new Map(installed.flatMap((path) => sizesIn(join(root, path))))
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  expect(bytes / 1e6).toBeLessThanOrEqual(210)
})

test('npm start installs no test runner, linter, browser, compiler or other runtime', () => {
  const names = installed.map((path) =>
    path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
  )
  const tools =
    /^(vitest|fast-check|typescript|bun|deno|@deno\/.*|@biomejs\/.*|@redocly\/.*|postject|playwright-core|axe-core|@modelcontextprotocol\/.*|@grpc\/.*|oidc-provider|smtp-server|lucide-react)$/
  expect(names).toContain('fastify')
  expect(names.filter((name) => tools.test(name))).toEqual([])
})
