import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Launcher, readyLine } from '@slipway/testing/launcher.ts'
import { root } from '@slipway/testing/root.ts'
import { afterAll, expect, test } from 'vitest'

const unitFile = join(root, 'docs/operate/slipway.service')
const unit = readFileSync(unitFile, 'utf8')
const launcher = new Launcher()
afterAll(() => launcher.clear())

/**
 * The root of the file system in which the unit is installed. Absolute paths in the commands and in the unit are moved
 * below it.
 */
const prefix = join(launcher.dir, 'root')
const withPrefix = (text: string) => text.replace(/(?<![\w.])\/(etc|var)\//g, `${prefix}/$1/`)

const settings = (name: string) =>
  Array.from(unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value]) => value!)

/**
 * Creates replacements for commands that would change this machine, and installs the package as npm would. Returns the
 * PATH for both.
 */
function makeTools(): string {
  const bin = join(launcher.dir, 'bin')
  const modules = join(launcher.dir, 'lib/node_modules')
  mkdirSync(bin)
  mkdirSync(join(modules, '@slipway/server'), { recursive: true })
  copyFileSync(unitFile, join(modules, '@slipway/server/slipway.service'))
  symlinkSync(join(root, 'packages/server/bin/slipway-server.js'), join(bin, 'slipway-server'))
  const tools = {
    npm: `[ "$1" != root ] || echo ${modules}`,
    useradd: `for name; do :; done; echo "$name" >> ${launcher.dir}/users`,
    systemctl: `echo "$*" >> ${launcher.dir}/systemctl`,
  }
  for (const [name, script] of Object.entries(tools)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return `${bin}:${process.env.PATH}`
}

test('the systemd unit starts after the commands in its header, and names no file that they do not create', async () => {
  const PATH = makeTools()
  mkdirSync(join(prefix, 'etc/systemd/system'), { recursive: true })
  const commands = Array.from(unit.matchAll(/^# {3}(\S.*)$/gm), ([, command]) => command!)
  expect(commands.length).toBeGreaterThan(3)
  execFileSync('sh', ['-e', '-c', withPrefix(commands.join('\n'))], { env: { PATH } })

  expect(readFileSync(join(prefix, 'etc/systemd/system/slipway.service'), 'utf8')).toBe(unit)
  expect(readFileSync(join(launcher.dir, 'systemctl'), 'utf8')).toContain('enable --now slipway')
  const users = readFileSync(join(launcher.dir, 'users'), 'utf8').trim().split('\n')
  expect(users).toEqual(settings('User'))

  const [execStart] = settings('ExecStart')
  const [program, ...args] = withPrefix(execStart!).split(' ')
  // systemd creates the state directory, and skips an environment file whose path begins with a dash.
  const [stateDir] = settings('StateDirectory').map((name) => join(prefix, 'var/lib', name))
  mkdirSync(stateDir!, { recursive: true, mode: 0o700 })
  launcher.use(stateDir!)
  const files = [...args, ...settings('EnvironmentFile').map(withPrefix)].filter((word) =>
    word.startsWith(prefix),
  )
  expect(files).toContain(join(prefix, 'etc/slipway/slipway.toml'))
  for (const file of files) expect([file, existsSync(file)]).toEqual([file, true])

  const server = launcher.run(program!, args, { env: { PATH, SLIPWAY_PORT: '0' } })
  expect(await server.until(readyLine)).toContain('Setup code')
  expect(await server.end('SIGTERM')).toBe(0)
}, 120_000)
