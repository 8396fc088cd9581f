import { eventually } from '@slipway/testing/eventually.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { startReceiver, verify } from '@slipway/testing/webhook-receiver.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import { binary } from './support/cli.ts'
import { goldenFile, transcript } from './support/golden.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const { home, base, runAs } = cli
const today = () => new Date().toISOString().slice(0, 10)
const firstDay = today()
beforeAll(() => cli.createVm('train-7'))

test('the audit log can be exported as JSON lines, and an export continues from a position without a gap', async () => {
  const exported = async (...words: string[]) => {
    const { stdout, code } = await cli.slipway('admin', 'audit', 'export', ...words)
    expect(code).toBe(0)
    return stdout
      .trimEnd()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { position: number; type: string; client_address: string })
  }
  const first = await exported()
  expect(first.find(({ type }) => type === 'vm.creating')?.client_address).toBe('127.0.0.1')
  const positions = first.map(({ position }) => position)
  expect(positions).toEqual(positions.toSorted((a, b) => a - b))
  const middle = positions[Math.floor(positions.length / 2)]!
  const rest = (await exported('--since', String(middle))).map(({ position }) => position)
  expect(rest.slice(0, positions.length - positions.indexOf(middle) - 1)).toEqual(
    positions.slice(positions.indexOf(middle) + 1),
  )
})

describe('with the login of an owner', () => {
  const asOwner = (...words: string[]) => runAs([...words, '--context', 'owner'])
  beforeAll(async () => {
    const words = [
      'login',
      '--name',
      'owner',
      '--api-url',
      cli.server.api_url,
      '--email',
      cli.server.email,
      '--password-stdin',
    ]
    expect(await runAs(words, { input: cli.server.password })).toMatchObject({ code: 0 })
  })

  async function golden(name: string, ...lines: string[][]) {
    const texts: string[] = []
    for (const words of lines) texts.push(transcript(words, await asOwner(...words, '--quiet')))
    await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile(name))
  }

  test('access keys can be created, used and revoked', async () => {
    const created = await asOwner('key', 'create', 'ci', '--role', 'read', '--expires', '30d', '-o', 'json')
    const { secret, role } = JSON.parse(created.stdout)
    expect(role).toBe('read')
    expect((await asOwner('key', 'list', '-o', 'columns=name,role', '--no-header')).stdout).toMatch(
      /^ci +read$/m,
    )
    expect((await asOwner('key', 'create', 'ci', '--role', 'member')).stderr).toContain('read, write')
    const signing = await asOwner('key', 'create', 'signer', '--kind', 'signing')
    expect(signing.stderr).toContain('must be bearer: signing keys are for the compatible API')
    const withKey = {
      SLIPWAY_API_URL: cli.server.api_url,
      SLIPWAY_ACCESS_KEY: secret,
      SLIPWAY_PROJECT: cli.server.project_id,
    }
    expect((await runAs(['vm', 'list'], { env: withKey })).code).toBe(0)
    expect((await runAs(['vm', 'delete', 'train-7', '--yes'], { env: withKey })).code).toBe(5)
    expect((await asOwner('key', 'delete', 'ci', '--yes')).code).toBe(0)
    expect((await runAs(['vm', 'list'], { env: withKey })).code).toBe(5)
  })

  test('deleting a key also revokes the keys that it created, and lists them', async () => {
    const created = async (words: string[], secret?: string) => {
      const env = { SLIPWAY_API_URL: cli.server.api_url, SLIPWAY_ACCESS_KEY: secret ?? '' }
      const organization = { SLIPWAY_PROJECT: cli.server.project_id }
      const run = secret
        ? await runAs([...words, '-o', 'json'], { env: { ...env, ...organization } })
        : await asOwner(...words, '-o', 'json')
      expect(run).toMatchObject({ code: 0 })
      return JSON.parse(run.stdout) as { id: string; secret: string; parent_id: string }
    }
    const parent = await created(['org', 'key', 'create', 'robot', '--role', 'admin'])
    const child = await created(['key', 'create', 'robot-child'], parent.secret)
    const second = await created(['key', 'create', 'robot-second'], parent.secret)
    expect(child.parent_id).toBe(parent.id)
    const columns = ['-o', 'columns=name,parent_id', '--no-header']
    expect((await asOwner('key', 'list', ...columns)).stdout).toContain(`robot-child   ${parent.id}`)
    expect((await asOwner('key', 'delete', 'robot-second', '--yes', '--keep-descendants')).code).toBe(0)
    const deleted = await asOwner('org', 'key', 'delete', 'robot', '--yes')
    expect(deleted.stderr).toContain(`Also revoked the keys that this key created: ${child.id}.`)
    expect(deleted.stderr).not.toContain(second.id)
  })

  test('projects and members can be created, changed and deleted', async () => {
    await golden(
      'people.txt',
      ['org', 'list', '-o', 'columns=name,id'],
      ['project', 'create', 'research'],
      ['project', 'rename', 'research', 'experiments'],
      ['project', 'list', '-o', 'columns=name,version'],
      ['project', 'delete', 'experiments', '--yes'],
      ['member', 'add', 'grace@example.com', '--role', 'viewer', '-o', 'columns=email,role,state'],
      ['member', 'change', 'grace@example.com', '--role', 'admin', '-o', 'columns=email,role,state'],
      ['member', 'list', '-o', 'columns=email,role,state'],
      ['member', 'delete', 'grace@example.com', '--yes'],
      ['org', 'alert-recipients', 'oncall@example.com'],
      ['org', 'alert-recipients', '--none'],
      ['org', 'quota-request', 'create', 'a100_gpus=4096', '--reason', 'A training run in December'],
      ['org', 'quota-request', 'list', '-o', 'columns=name,max,state,reason'],
    )
  })

  test('the remaining keys of a demoted or removed member are listed or revoked', async () => {
    const invited = await asOwner('member', 'add', 'hopper@example.com', '--role', 'admin', '-o', 'json')
    const code = JSON.parse(invited.stdout).invite_url.split('#code=')[1]
    const accepted = await fetch(`${cli.server.api_url}/v0.1/auth/accept`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, password: 'correct horse battery' }),
    })
    const { access_token } = (await accepted.json()) as { access_token: string }
    await fetch(`${cli.server.api_url}/v0.1/projects/${cli.server.project_id}/access-keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'hopper-ci', role: 'write' }),
    })
    const change = (...words: string[]) => asOwner('member', 'change', 'hopper@example.com', ...words)
    expect((await change('--role', 'member')).stderr).toMatch(/stay valid: hopper-ci \(slp_\w{8}\)\./)
    expect((await change('--role', 'viewer', '--revoke-keys')).stderr).toBe('')
    expect((await asOwner('key', 'list', '-o', 'columns=name')).stdout).not.toContain('hopper-ci')
    expect((await asOwner('member', 'delete', 'hopper@example.com', '--yes', '--revoke-keys')).code).toBe(0)
  })

  test('projects can be created with labels, labeled and selected by labels', async () => {
    const named = async (selector: string) =>
      (await asOwner('project', 'list', '-l', selector, '-o', 'columns=name', '--no-header')).stdout
    expect((await asOwner('project', 'create', 'lab', '--label', 'team=ml')).code).toBe(0)
    expect(await named('team=ml')).toBe('lab\n')
    expect((await asOwner('project', 'label', 'lab', 'stage=test', '--remove', 'team')).code).toBe(0)
    expect(await named('team=ml')).toBe('')
    expect(await named('stage=test')).toBe('lab\n')
    expect((await asOwner('project', 'delete', 'lab', '--yes')).code).toBe(0)
  })

  test('budgets can be set, and costs, usage, invoices and the billing link are shown', async () => {
    const json = async (...words: string[]) => {
      const run = await asOwner(...words, '-o', 'json')
      expect(run).toMatchObject({ code: 0, stderr: '' })
      return JSON.parse(run.stdout)
    }
    expect(await json('project', 'budget', '--set', '500', '--hard-stop')).toMatchObject({
      monthly_usd: 500,
      hard_stop: true,
    })
    expect(await json('project', 'budget', '--none')).toMatchObject({ monthly_usd: null })
    expect((await json('cost')).usd_per_hour).toBeCloseTo(0.9)
    expect((await json('cost', '--org')).usd_per_hour).toBeCloseTo(0.9)
    const used = await json('usage')
    // Usage has only complete days. No day has ended since the VM was created, unless midnight UTC has passed.
    if (today() === firstDay) expect(used).toEqual([])
    expect(await json('org', 'invoices')).toBeInstanceOf(Array)
    expect((await asOwner('usage', '--csv')).stdout).toContain('product_name')
    expect((await asOwner('billing', '--no-open')).stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\S+\n$/)
  })

  test('whoami shows the user’s role in the organization of the project', async () => {
    expect((await asOwner('whoami')).stdout).toMatch(
      /Role +owner: can do everything in the organization\nProject +default \(/,
    )
  })

  test('webhooks can be created, paused and deleted', async () => {
    // A public address. Nothing is ever sent there, because no VM changes before the pause.
    const url = 'https://11.0.0.1/slipway'
    const created = await asOwner('webhook', 'create', url, '--events', 'vm.*', '-o', 'json')
    expect(JSON.parse(created.stdout).secret).toMatch(/^whsec_/)
    expect((await asOwner('webhook', 'pause', url, '-o', 'columns=state')).stdout).toBe('paused\n')
    expect((await asOwner('webhook', 'deliveries', url, '-o', 'json')).stdout).toBe('[]\n')
    expect((await asOwner('webhook', 'delete', url, '--yes')).code).toBe(0)
    expect((await asOwner('webhook', 'list', '-o', 'json')).stdout).toBe('[]\n')
  })

  test('events can be listed and followed as they happen', async () => {
    const listed = JSON.parse((await asOwner('events', '--type', 'vm.running', '-o', 'json')).stdout)
    expect(listed.map((event: { type: string }) => event.type)).toEqual(['vm.running'])
    const words = [
      binary,
      'events',
      '-f',
      '--after',
      String(listed[0].position),
      '--context',
      'owner',
      '-o',
      'json',
    ]
    const follower = startProgram(process.execPath, words, { env: base, cwd: home })
    const creation = asOwner('network', 'create', 'followed', '--cidr', '10.30.0.0/16')
    await follower.until(/"network\.created".*\n/)
    await follower.end('SIGINT')
    const types = follower.lines.map((line) => JSON.parse(line).type)
    expect(types).toContain('network.created')
    expect((await creation).code).toBe(0)
    await asOwner('network', 'delete', 'followed', '--yes')
  })

  test('webhook listen delivers signed events to this computer', async () => {
    const receiver = await startReceiver()
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const words = ['webhook', 'listen', receiver.url, '--events', 'network.*', '--secret', secret]
    const listener = startProgram(process.execPath, [binary, ...words, '--context', 'owner'], {
      env: base,
      cwd: home,
    })
    await listener.untilErrors(/Listening\./)
    await asOwner('network', 'create', 'heard', '--cidr', '10.31.0.0/16')
    await listener.until(/network\.created .* 204\n/)
    await listener.end('SIGINT')
    const [first] = receiver.received
    expect(first && verify(secret, first)).toMatchObject({ type: 'network.created' })
    await asOwner('network', 'delete', 'heard', '--yes')
  })

  test('a webhook to a private address is refused, and the error names the setting that would allow it', async () => {
    const { code, stderr } = await asOwner('webhook', 'create', 'http://127.0.0.1:3000/hooks')
    expect(code).toBe(2)
    expect(stderr).toContain('allow_private_ranges')
  })

  test('tables show names where the service has ids', async () => {
    await cli.slipway('disk', 'create', 'datasets', '--size', '10GiB', '--location', 'us-east1-a')
    await cli.slipway('disk', 'attach', 'datasets', 'train-7')
    const shown = async (...words: string[]) => (await cli.slipway(...words)).stdout
    expect(await shown('disk', 'list', '--no-header')).toMatch(/^datasets .* train-7 /)
    expect(await shown('events', '--resource', 'train-7', '--type', 'vm.running')).toMatch(
      /vm\.running +train-7 /,
    )
    const operations = await shown('operation', 'list', '--resource', 'datasets', '--no-header')
    expect(operations).toMatch(/^\S+ +create +disk +succeeded +datasets +\w+\n$/)
    const packet = ['--from', '198.51.100.1', '--to', 'train-7', '--port', '22']
    expect(await shown('firewall', 'test', ...packet)).toMatch(/Decided by +allow-ssh\n/)
    expect(await shown('whoami')).toMatch(/Role +write: can view and change .*\nProject +default \(/)
    expect((await runAs(['context', 'list'])).stdout).toMatch(/owner .* default\n/)
    expect((await cli.slipway('events', '--resource', 'train7')).stderr).toContain('Did you mean train-7?')
    await cli.slipway('disk', 'create', 'spare', '--size', '10GiB', '--location', 'us-east1-a')
    await cli.slipway('disk', 'delete', 'spare', '--yes')
    // The name of the deleted disk comes from its events.
    const namedEvents = /operation\.succeeded +spare .*\n.* disk\.deleted +spare /
    await eventually(async () => namedEvents.test(await shown('events', '--limit', '6')))
  })

  test('the operator can set the price of VMs, disks, custom images, snapshots and reserved addresses', async () => {
    const usd = {
      'l40s-48gb.1x': 1.1,
      'persistent-ssd': 0.00014,
      'custom-image': 0.00008,
      snapshot: 0.00009,
      'reserved-address': 0.005,
    }
    const pairs = Object.entries(usd).map(([product, price]) => `${product}=${price}`)
    const prices = await cli.json('admin', 'price', 'set', ...pairs)
    const priceOf = (product: string) =>
      prices.find(({ product_name }: { product_name: string }) => product_name === product)
    expect(priceOf('l40s-48gb.1x')).toMatchObject({ unit: 'vm_hour', usd: 1.1 })
    expect(priceOf('persistent-ssd')).toMatchObject({ unit: 'gb_hour', usd: 0.00014 })
    expect(priceOf('custom-image')).toMatchObject({ unit: 'gb_hour', usd: 0.00008 })
    expect(priceOf('snapshot')).toMatchObject({ unit: 'gb_hour', usd: 0.00009 })
    expect(priceOf('reserved-address')).toMatchObject({ unit: 'address_hour', usd: 0.005 })
    const unknown = await cli.slipway('admin', 'price', 'set', 'custom-imag=1')
    expect(unknown.stderr).toContain('did you mean custom-image?')
  })

  test('the operator can create and suspend organizations and users', async () => {
    const operator = { SLIPWAY_API_URL: cli.server.api_url, SLIPWAY_OPERATOR_KEY: cli.server.operator_key }
    const admin = async (...words: string[]) => {
      const run = await runAs(['admin', ...words, '-o', 'json'], { env: operator })
      expect(run).toMatchObject({ code: 0, stderr: '' })
      return JSON.parse(run.stdout)
    }
    await admin('org', 'create', 'Harbour Labs')
    const user = await admin('user', 'create', 'ada@example.com', '--org', 'Harbour Labs', '--role', 'owner')
    expect(user).toMatchObject({ email: 'ada@example.com', state: 'invited' })
    const code = user.invite_url.split('#code=')[1]
    const accepted = await fetch(`${cli.server.api_url}/v0.1/auth/accept`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code, password: 'correct horse battery' }),
    })
    expect(accepted.status).toBe(200)
    expect(await admin('user', 'suspend', 'ada@example.com')).toMatchObject({ suspended: true })
    expect(await admin('org', 'suspend', 'Harbour Labs', '--stop-vms')).toMatchObject({ suspended: true })
    expect(await admin('org', 'restore', 'Harbour Labs')).toMatchObject({ suspended: false })
    const quotas = await admin('quota', 'set', cli.server.project_id, 'vms=7')
    expect(quotas).toContainEqual(expect.objectContaining({ name: 'vms', max: 7 }))
    const free = await admin('quota', 'set', cli.server.project_id, 'vms=none')
    expect(free).not.toContainEqual(expect.objectContaining({ name: 'vms', max: 7 }))
    const together = await admin('org', 'quotas', 'Harbour Labs', 'a100_gpus=9', 'projects=3')
    expect(together).toContainEqual({ name: 'a100_gpus', max: 9, used: 0, available: 9 })
    expect(await admin('org', 'quotas', 'Harbour Labs')).toEqual(together)
    const [host] = await admin('host', 'list', '--location', 'us-east1-a')
    expect(await admin('host', 'cordon', host.id)).toMatchObject({ schedulable: false })
    expect(await admin('host', 'uncordon', host.id)).toMatchObject({ schedulable: true })
    const [gpu] = await admin('gpu', 'list', '--host', host.id, '--state', 'free')
    expect(await admin('gpu', 'quarantine', gpu.id)).toMatchObject({ state: 'quarantined' })
    expect(await admin('gpu', 'free', gpu.id)).toMatchObject({ id: gpu.id })
  })
})
