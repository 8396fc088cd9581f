import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectLevers } from '@slipway/sdk/testing'
import { type InProcessServer, startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { twoLocations } from '@slipway/testing/real-server.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freshHome } from './support/cli.ts'
import { isMissing } from './support/programs.ts'
import { openTerminal } from './support/terminal.ts'

describe.skipIf(isMissing('tmux'))('at a terminal', { timeout: 300_000 }, () => {
  const { home, base, slipway: runAs, remove } = freshHome()
  const terminals: ReturnType<typeof openTerminal>[] = []
  let server: InProcessServer
  let levers: ReturnType<typeof connectLevers>
  let env: Record<string, string>
  let terminal: ReturnType<typeof openTerminal>

  beforeAll(async () => {
    mkdirSync(join(home, '.ssh'))
    writeFileSync(join(home, '.ssh/id_ed25519.pub'), `${sshKey}\n`)
    server = await startInProcessServer(twoLocations(300), ['--dev'])
    levers = connectLevers({ url: server.api_url, operatorKey: server.operator_key })
    env = {
      ...base,
      SLIPWAY_API_URL: server.api_url,
      SLIPWAY_ACCESS_KEY: server.access_key,
      SLIPWAY_PROJECT: server.project_id,
    }
    terminal = openTerminal({ folder: home, env })
    terminals.push(terminal)
  })
  /** Guests boot by the clock of the service. While the clock is stopped, no guest finishes its boot. */
  const holdBoots = () => levers.clock.set({ mode: 'frozen' })
  const letBoot = () => levers.clock.set({ mode: 'real' })
  afterEach(letBoot)
  afterAll(async () => {
    for (const each of terminals) each.close()
    await server?.close()
    remove()
  })

  test('vm create asks for missing values, and shows the price, the live steps and how to connect', async () => {
    terminal.run('vm create')
    await terminal.see(/Which type\?[\s\S]*● a40\.1x +1 x A40 48GB PCIe +\$0\.90\/h/)
    terminal.press('Down', 'Enter')
    await terminal.see(/Which location\?/)
    terminal.press('Enter')
    await terminal.see(/Name\n/)
    terminal.press('C-u')
    terminal.type('train-7')
    terminal.press('Enter')
    const question = await terminal.see(/Create it\?/)
    expect(question).toContain('Using the key ~/.ssh/id_ed25519.pub')
    expect(question).toContain('train-7: a100.1x in us-east1-a, $1.45 per hour, $1,058.50 per month')
    await holdBoots()
    terminal.press('Enter')
    await terminal.see(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Creating train-7 \d+s[\s\S]*✓ admit[\s\S]*. boot/)
    await letBoot()
    const end = await terminal.see(/ended with 0/)
    expect(end).toMatch(/✓ Creating train-7 \d+s\n {2}✓ admit/)
    expect(end).toContain(
      'train-7 is running. It is simulated: there is no machine behind it, so SSH does not connect.',
    )
  })

  test('vm create offers to create an SSH key if there is none', async () => {
    const newHome = join(home, 'new-home')
    mkdirSync(newHome)
    const fresh = openTerminal({ folder: newHome, env: { ...env, HOME: newHome }, columns: 110 })
    terminals.push(fresh)
    const words = 'vm create keyless --type a40.1x --location us-east1-a --dry-run'
    fresh.run(words)
    await fresh.see(/There is no SSH key in ~\/\.ssh\. Create ~\/\.ssh\/id_ed25519\?/)
    fresh.press('C-c')
    await fresh.see(/ended with 130/)
    expect(existsSync(join(newHome, '.ssh'))).toBe(false)
    fresh.run(words)
    await fresh.see(/Create ~\/\.ssh\/id_ed25519\?/)
    fresh.press('Enter')
    await fresh.see(/ended with 0/)
    expect(statSync(join(newHome, '.ssh')).mode & 0o777).toBe(0o700)
    expect(statSync(join(newHome, '.ssh/id_ed25519')).mode & 0o777).toBe(0o600)
    const createdKey = readFileSync(join(newHome, '.ssh/id_ed25519.pub'), 'utf8').trim()
    const { stdout } = await runAs(words.split(' '), { env: { ...env, HOME: newHome } })
    expect(stdout).toContain(createdKey)
  })

  test('vm delete asks for confirmation; an answer of no or Ctrl-C cancels', async () => {
    terminal.run('vm delete train-7')
    await terminal.see(
      /Delete train-7\? The OS disk of each VM will also be deleted; data disks will be kept\./,
    )
    terminal.press('Enter')
    await terminal.see(/Cancelled\.\nended with 130/)
    terminal.run('vm delete train-7')
    await terminal.see(/Delete train-7\?/)
    terminal.press('C-c')
    await terminal.see(/ended with 130/)
    expect((await runAs(['vm', 'list', '-o', 'columns=name', '--no-header'], { env })).stdout).toBe(
      'train-7\n',
    )
  })

  test('before the usage of the first day is recorded, usage says where to find the current cost', async () => {
    terminal.run('usage --location eu-north1-a')
    await terminal.see(/Nothing to show\.[\s\S]*For current cost, run `slipway cost`\.\nended with 0/)
  })

  test('states are colored, but not with NO_COLOR, --no-color or in a pipe', async () => {
    terminal.run('vm list')
    await terminal.see(/ended with 0/)
    expect(terminal.colors()).toContain('\x1b[32mrunning')
    for (const [words, environment] of [
      ['vm list --no-color'],
      ['vm list | cat'],
      ['vm list', 'NO_COLOR=1'],
    ] as const) {
      terminal.run(words, environment)
      expect(await terminal.see(/ended with 0/)).toContain('running')
      expect(terminal.colors()).not.toContain('\x1b[32m')
    }
  })

  test('a narrow terminal hides less important columns, and no line wraps', async () => {
    const narrow = openTerminal({ folder: home, env, columns: 60 })
    terminals.push(narrow)
    narrow.run('offers --gpu a100')
    const text = await narrow.see(/ended with 0/)
    expect(text).toMatch(/TYPE +LOCATION +AVAILABLE +\$\/HOUR +QUOTA LEFT\n/)
    expect(text).toMatch(/a100\.1x +us-east1-a +7 +\$1\.45 +\d+\n/)
    expect(text.replaceAll('\n', ' ')).toContain('Hidden columns: gpus, cores, memory. Widen the terminal')
  })

  test('a command that waits too long exits with 124 and says how to continue', async () => {
    await holdBoots()
    const words = ['vm', 'create', 'slow', '--type', 'a40.1x', '--location', 'us-east1-a', '--timeout', '1s']
    const { code, stderr } = await runAs(words, { env })
    expect(code).toBe(124)
    expect(stderr).toMatch(/To continue waiting, run `slipway operation wait [0-9a-f-]{36}`\./)
    const id = /wait ([0-9a-f-]{36})/.exec(stderr)?.[1] ?? ''
    await letBoot()
    expect((await runAs(['operation', 'wait', id], { env })).code).toBe(0)
  })

  test('Ctrl-C during a creation does not stop it, and says how to follow or delete the VM', async () => {
    await holdBoots()
    const where = '--type a40.1x --location us-east1-a'
    terminal.run(`vm create left ${where}`)
    await terminal.see(/✓ admit[\s\S]*. boot/)
    terminal.press('C-c')
    const end = await terminal.see(/ended with 130/)
    expect(end).toContain('… Creating left')
    expect(end).not.toContain('✗')
    expect(end).toMatch(
      /Stopped waiting\. The operation continues: Creating left\.\n +To follow the operation, run `slipway operation wait/,
    )
    await letBoot()
    const [, id = ''] = /`slipway vm delete ([0-9a-f-]{36})`/.exec(end) ?? []
    terminal.run(`vm delete ${id} --yes`)
    await terminal.see(/ended with 0/)
  })

  test('a timeout is not shown as a failure, because the operation continues', async () => {
    await holdBoots()
    terminal.run('vm create late --type a40.1x --location us-east1-a --timeout 1s')
    const end = await terminal.see(/ended with 124/)
    expect(end).toContain('… Creating late')
    expect(end).not.toContain('✗')
  })

  test('login asks for the URL and the credentials, and stores them', async () => {
    const clean = { ...base, XDG_CONFIG_HOME: join(home, 'other') }
    const fresh = openTerminal({ folder: home, env: clean, columns: 90 })
    terminals.push(fresh)
    fresh.run('login')
    await fresh.see(/URL of the service/)
    fresh.press('C-u')
    fresh.type(server.api_url)
    fresh.press('Enter')
    await fresh.see(/How do you want to log in\?/)
    fresh.press('Down', 'Enter')
    await fresh.see(/E-mail\n/)
    fresh.type(server.email)
    fresh.press('Enter')
    await fresh.see(/Password\n/)
    fresh.type(server.password)
    fresh.press('Enter')
    const end = await fresh.see(/ended with 0/)
    expect(end).toContain(`Logged in to ${server.api_url}`)
    expect(end).not.toContain(server.password)
    const { stdout } = await runAs(['whoami', '-o', 'json'], { env: clean })
    expect(JSON.parse(stdout).caller.email).toBe(server.email)
  })
})
