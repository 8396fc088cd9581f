import type { Image, Vm } from '@slipway/sdk'
import { expect, test } from 'vitest'
import { goldenFile, transcript } from './support/golden.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const { publicKey, slipway } = cli
const json = async (...words: string[]) => {
  const run = await slipway(...words, '-o', 'json')
  expect(run).toMatchObject({ code: 0 })
  return JSON.parse(run.stdout)
}
const where = ['--location', 'us-east1-a']

async function golden(name: string, ...lines: string[][]) {
  const texts: string[] = []
  // --quiet omits the steps, whose names depend on the engine.
  for (const words of lines) texts.push(transcript(words, await slipway(...words, '--quiet')))
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile(name))
}

// This test runs first, while every GPU is free.
test('offers are sorted by price and can be filtered', async () => {
  const offers = await json('offers')
  const prices = offers.map((offer: { usd_per_hour: number }) => offer.usd_per_hour)
  expect(prices).toEqual(prices.toSorted((one: number, other: number) => one - other))
  const narrow = await json('offers', '--gpu', 'a100', '--min-gpus', '2', '--max-price', '3', '--available')
  expect(new Set(narrow.map(({ type }: { type: string }) => type))).toEqual(new Set(['a100.2x']))
  expect(await json('offers', '--min-memory', '80', '--available')).toEqual([])
  const most = (await json('offers', '--sort', 'available')).map(
    (offer: { quantity: number }) => offer.quantity,
  )
  expect(most).toEqual(most.toSorted((one: number, other: number) => other - one))
  await golden(
    'offers.txt',
    ['offers', '--gpu', 'a100', ...where],
    ['offers', '--gpu', 'a40.1x', '-o', 'json'],
  )
})

test('images, locations, prices and quotas are listed', async () => {
  await golden('catalogue.txt', ['image', 'list'], ['location', 'list'], ['price', 'list'], ['quota', 'list'])
})

test('operators can list capacity, faults, locations, hosts and operations, and set prices', async () => {
  await golden(
    'admin.txt',
    ['admin', 'capacity'],
    ['admin', 'faults', '--by', 'host'],
    ['admin', 'location', 'list'],
    ['admin', 'host', 'show', 'a40-1'],
    ['admin', 'price', 'set', 'a40.1x=0.95'],
    ['admin', 'operation', 'list', '--stuck'],
  )
})

test('vm create names the locations with stock, and the required options that are missing', async () => {
  // Fills a location whose A40 GPUs no other test uses, because GPUs of deleted VMs are not free for a while.
  const whole = ['--type', 'a40.8x', '--location', 'eu-north1-a', '--ssh-key', publicKey]
  await slipway('vm', 'create', 'whole', ...whole)
  const none = await slipway('vm', 'create', 'next', ...whole)
  expect(none).toMatchObject({ code: 4, stdout: '' })
  expect(none.stderr).toContain('Available in: us-east1-a')
  const places = ['--location', 'eu-north1-a,us-east1-a']
  const elsewhere = await slipway('vm', 'create', 'next', ...whole, ...places)
  expect(elsewhere.stderr).toContain('a40.8x is out of stock in eu-north1-a; trying us-east1-a.')
  expect((await json('vm', 'show', 'next')).location).toBe('us-east1-a')
  await slipway('vm', 'delete', 'whole', 'next', '--yes')
  const missing = await slipway('vm', 'create', 'x')
  expect(missing).toMatchObject({ code: 2, stdout: '' })
  expect(missing.stderr).toContain('Missing: --type and --location.')
})

test('vm create says that a simulated VM cannot be reached, and prints a line for each step to stderr', async () => {
  const words = ['vm', 'create', 'train-7', '--type', 'a100.1x', ...where, '--ssh-key', publicKey]
  const { code, stdout, stderr } = await cli.executable(words, { env: cli.env })
  expect(code).toBe(0)
  expect(stderr).toMatch(/^(Creating train-7: [a-z ]+ done\n)+$/)
  expect(stderr).toContain('Creating train-7: boot done\n')
  expect(stdout).toMatch(
    /^\S+ is running\. It is simulated: there is no machine behind it, so SSH does not connect\.\n$/,
  )
})

test('a VM created without --image gets the newest Ubuntu image for GPUs', async () => {
  expect((await json('vm', 'show', 'train-7')).image).toBe('ubuntu24.04-nvidia:latest')
})

test('a VM in a location with only one image gets that image', async () => {
  const admin = async (path: string, change?: object) => {
    const response = await fetch(`${cli.server.api_url}/v0.1/admin/images${path}`, {
      method: change ? 'PATCH' : 'GET',
      headers: { authorization: `Bearer ${cli.server.operator_key}`, 'content-type': 'application/json' },
      ...(change && { body: JSON.stringify(change) }),
    })
    expect(response.status).toBe(200)
    return response.json()
  }
  const { items } = (await admin('')) as { items: Image[] }
  const ubuntus = items.filter((image) => image.name.startsWith('ubuntu'))
  for (const { id } of ubuntus) await admin(`/${id}`, { locations: ['us-east1-a'] })
  const there = ['--type', 'a100.1x', '--location', 'eu-north1-a', '--ssh-key', publicKey]
  expect(await slipway('vm', 'create', 'plain', ...there, '--quiet')).toMatchObject({ code: 0, stderr: '' })
  expect((await json('vm', 'show', 'plain')).image).toBe('debian12:latest')
  await slipway('vm', 'delete', 'plain', '--yes')
  for (const { id, locations } of ubuntus) await admin(`/${id}`, { locations })
})

test('a VM is found by its name and by its id, and a wrong name suggests the right one', async () => {
  const { id } = await json('vm', 'show', 'train-7')
  expect((await json('vm', 'show', id)).name).toBe('train-7')
  const missed = await slipway('vm', 'show', 'train7')
  expect(missed).toEqual({
    code: 3,
    stdout: '',
    stderr: 'slipway: There is no VM called train7.\n  Did you mean train-7?\n',
  })
})

test('vm list and vm show have the expected output in every format', async () => {
  const [header] = (await slipway('vm', 'list')).stdout.split('\n')
  expect(header?.split(/ +/)).toEqual(['NAME', 'TYPE', 'STATE', 'LOCATION', 'SSH', 'EXPIRES', 'AGE'])
  await golden(
    'vm.txt',
    ['vm', 'list', '-o', 'columns=name,type,state,location,image,age'],
    ['vm', 'list', '--no-header', '-o', 'columns=name,state,type'],
    ['vm', 'list', '--state', 'stopped'],
    ['vm', 'show', 'train-7'],
    ['vm', 'show', 'train-7', '-o', 'columns=name,state'],
    ['vm', 'list', '-o', 'json'],
    ['vm', 'show', 'train-7', '-o', 'yaml'],
    ['vm', 'create', 'x', '--type', 'a100.1x', ...where, '--ssh-key', '/nonexistent', '--dry-run'],
  )
})

test('a group is created from a template, resized, stopped and deleted', async () => {
  const options = [
    '--type',
    'a100.1x',
    '--location',
    'us-east1-a',
    '--image',
    'ubuntu24.04-nvidia',
    '--ssh-key',
    publicKey,
  ]
  expect(await slipway('template', 'create', 'node', ...options, '--new-disk', '10GiB')).toMatchObject({
    code: 0,
  })
  expect((await json('template', 'create', 'node', ...options, '--new-version')).version).toBe(2)
  expect(await json('template', 'list')).toHaveLength(1)
  expect(await json('template', 'list', '--all-versions')).toHaveLength(2)
  const created = await slipway(
    'vm',
    'create',
    'from-template',
    '--template',
    'node',
    '--label',
    'team=ml',
    '-o',
    'json',
    '--quiet',
  )
  expect(created).toMatchObject({ code: 0, stderr: '' })
  const vm = JSON.parse(created.stdout)
  expect(vm).toMatchObject({ type: 'a100.1x', labels: { team: 'ml' } })
  await slipway('vm', 'delete', 'from-template', '--yes')
  const group = await json('group', 'create', 'trainer', '--count', '2', '--template', 'node')
  expect(group).toMatchObject({ state: 'HEALTHY', running_instance_count: 2 })
  await golden(
    'group.txt',
    ['group', 'list'],
    ['group', 'show', 'trainer'],
    ['group', 'resize', 'trainer', '--count', '1'],
    ['group', 'stop', 'trainer'],
    ['template', 'list'],
    ['template', 'show', 'node'],
    ['group', 'create', 'huge', '--count', '64', '--template', 'node', '--type', 'a100.8x'],
  )
  expect(await slipway('group', 'delete', 'trainer', '--delete-disks', '--yes')).toMatchObject({ code: 0 })
  expect(await json('group', 'list')).toEqual([])
  expect(await slipway('template', 'delete', 'node', '--yes')).toMatchObject({ code: 0 })
})

test('vm create --dry-run shows the price and creates nothing', async () => {
  const dry = await json(
    'vm',
    'create',
    'dry',
    '--type',
    'a100.2x',
    ...where,
    '--ssh-key',
    publicKey,
    '--dry-run',
  )
  expect(dry.estimate.usd_per_hour).toBe(2.9)
  expect(dry.request).toMatchObject({ name: 'dry', type: 'a100.2x' })
  expect((await json('vm', 'list')).map((vm: Vm) => vm.name)).toEqual(['train-7'])
})

test('a VM can be stopped, resized, started, reset and extended', async () => {
  expect((await json('vm', 'stop', 'train-7')).state).toBe('STATE_SHUTOFF')
  const twice = await slipway('vm', 'stop', 'train-7')
  expect(twice.code).toBe(4)
  expect((await json('vm', 'resize', 'train-7', '--type', 'a100.2x')).type).toBe('a100.2x')
  expect((await json('vm', 'start', 'train-7')).state).toBe('STATE_RUNNING')
  expect((await json('vm', 'reset', 'train-7')).state).toBe('STATE_RUNNING')
  const extended = await json('vm', 'extend', 'train-7', '--ttl', '4h', '--on-expiry', 'delete')
  expect(extended.on_expiry).toBe('delete')
  expect(Date.parse(extended.expires_at)).toBeGreaterThan(Date.now() + 3 * 3_600_000)
  expect((await json('vm', 'extend', 'train-7', '--never')).expires_at).toBe('')
  expect((await slipway('vm', 'extend', 'train-7', '--never', '--ttl', '4h')).code).toBe(2)
  const [{ operation_id }] = await json('admin', 'operation', 'list')
  const shown = await slipway('admin', 'operation', 'show', operation_id)
  expect(shown.stdout).toMatch(/Attempts +0\n/)
  expect(shown.stdout).toMatch(/STEP +STATE/)
})

test('vm log prints the output of the serial console', async () => {
  const { code, stdout } = await slipway('vm', 'log', 'train-7')
  expect(code).toBe(0)
  expect(stdout.length).toBeGreaterThan(0)
})

test('vm delete needs --yes without a terminal, and then deletes the VM', async () => {
  const unsure = await slipway('vm', 'delete', 'train-7')
  expect(unsure).toEqual({
    code: 2,
    stdout: '',
    stderr: 'slipway: This command needs a confirmation. Add --yes.\n',
  })
  const sure = await slipway('vm', 'delete', 'train-7', '--yes', '--quiet')
  expect(sure).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await json('vm', 'list')).toEqual([])
})

test('vm create --no-wait prints the operation, which can be waited for and watched', async () => {
  const started = await slipway(
    'vm',
    'create',
    'quick',
    '--type',
    'a100.1x',
    ...where,
    '--ssh-key',
    publicKey,
    '--no-wait',
  )
  expect(started, started.stderr).toMatchObject({ code: 0 })
  const id = started.stdout.trim()
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  expect(await slipway('operation', 'wait', id)).toMatchObject({ code: 0, stdout: 'SUCCEEDED\n' })
  const watched = await slipway('operation', 'watch', id)
  expect(watched.stdout).toContain('boot')
  await slipway('vm', 'delete', 'quick', '--yes')
})

test('disks can be created, grown, attached, detached and deleted', async () => {
  const holder = await slipway(
    'vm',
    'create',
    'holder',
    '--type',
    'a100.1x',
    ...where,
    '--ssh-key',
    publicKey,
  )
  expect(holder, holder.stderr).toMatchObject({ code: 0 })
  await golden(
    'disk.txt',
    ['disk', 'create', 'datasets', '--size', '100GiB', ...where],
    ['disk', 'list'],
    ['disk', 'resize', 'datasets', '--size', '200GiB'],
    ['disk', 'attach', 'datasets', 'holder'],
    ['disk', 'delete', 'datasets', '--yes'],
    ['disk', 'detach', 'datasets', 'holder'],
    ['disk', 'delete', 'datasets', '--yes'],
    ['disk', 'list', '-o', 'json'],
  )
  await slipway('vm', 'delete', 'holder', '--yes')
})

test('disks can be renamed, labeled, selected by labels and protected', async () => {
  await slipway('disk', 'create', 'corpus', '--size', '10GiB', ...where, '--label', 'team=ml')
  const labeled = async (selector: string) =>
    (await json('disk', 'list', '-l', selector)).map((disk: { name: string }) => disk.name)
  expect(await labeled('team=ml')).toEqual(['corpus'])
  await slipway('disk', 'label', 'corpus', 'stage=test', '--remove', 'team')
  expect((await json('disk', 'show', 'corpus')).labels).toEqual({ stage: 'test' })
  expect(await labeled('team=ml')).toEqual([])
  expect((await slipway('disk', 'rename', 'corpus', 'texts')).code).toBe(0)
  expect((await slipway('disk', 'protect', 'texts')).code).toBe(0)
  const refused = await slipway('disk', 'delete', 'texts', '--yes')
  expect(refused.code).toBe(4)
  expect(refused.stderr).toContain('slipway disk unprotect')
  expect((await slipway('disk', 'unprotect', 'texts')).code).toBe(0)
  expect((await slipway('disk', 'delete', 'texts', '--yes')).code).toBe(0)
})

test('a VM with location “any”, a registered key and labels can be renamed, selected and protected', async () => {
  await json('ssh-key', 'create', 'desk', '--file', publicKey)
  const flags = ['--type', 'a100.1x', '--ssh-key', 'desk', '--label', 'team=ml', '--quiet']
  const created = await slipway('vm', 'create', 'tune', '--location', 'any', ...flags)
  expect(created).toMatchObject({ code: 0, stderr: '' })
  const labeled = async (selector: string) =>
    (await json('vm', 'list', '-l', selector)).map((vm: Vm) => [vm.name, vm.location])
  // GPUs of earlier tests may still be in quarantine, so the VM can be in either location.
  expect(await labeled('team=ml')).toEqual([['tune', expect.stringMatching(/^(us-east1|eu-north1)-a$/)]])
  await slipway('vm', 'label', 'tune', 'stage=test', '--remove', 'team')
  expect(await labeled('team=ml')).toEqual([])
  expect((await slipway('vm', 'rename', 'tune', 'tuned')).code).toBe(0)
  expect((await slipway('vm', 'protect', 'tuned')).code).toBe(0)
  expect((await slipway('vm', 'delete', 'tuned', '--yes')).code).toBe(4)
  expect((await slipway('vm', 'unprotect', 'tuned')).code).toBe(0)
  expect((await slipway('vm', 'delete', 'tuned', '--yes')).code).toBe(0)
  await slipway('ssh-key', 'delete', 'desk', '--yes')
})

test('a key that is neither a file nor registered is rejected with its name', async () => {
  const words = ['vm', 'create', 'x', '--type', 'a100.1x', ...where, '--ssh-key', 'dsek']
  const run = await slipway(...words)
  expect(run).toMatchObject({ code: 3, stdout: '' })
  expect(run.stderr).toContain('There is no SSH key called dsek.')
})

test('networks and firewall rules can be created with labels', async () => {
  const labels = { team: 'ml' }
  const label = ['--label', 'team=ml']
  expect(await json('network', 'create', 'lab', '--cidr', '10.40.0.0/16', ...label)).toMatchObject({ labels })
  expect(await json('firewall', 'allow', 'jupyter', ...label)).toMatchObject({ labels })
  expect(await json('firewall', 'create', 'web', '--port', '443', ...label)).toMatchObject({ labels })
  await slipway('firewall', 'delete', 'allow-jupyter', 'web', '--yes')
  await slipway('network', 'delete', 'lab', '--yes')
})

test('an SSH public key can be registered, listed and removed', async () => {
  const created = await json('ssh-key', 'create', 'laptop', '--file', publicKey)
  expect(created).toMatchObject({ name: 'laptop', type: 'ssh-ed25519' })
  const listed = await slipway('ssh-key', 'list', '-o', 'columns=name,type', '--no-header')
  expect(listed.stdout).toBe('laptop  ssh-ed25519\n')
  expect((await slipway('ssh-key', 'delete', 'laptop', '--yes')).code).toBe(0)
  expect(await json('ssh-key', 'list')).toEqual([])
})

test('firewall rules can be written as text, listed, tested, changed and deleted', async () => {
  await slipway('vm', 'create', 'target', '--type', 'a100.1x', '--location', 'any', '--ssh-key', publicKey)
  await golden(
    'firewall.txt',
    ['firewall', 'allow', 'ssh', 'from', '203.0.113.0/24'],
    ['firewall', 'allow', '3000-8080', 'from', '203.0.113.7', '--name', 'web'],
    ['firewall', 'change', 'web', '--port', '3000'],
    ['firewall', 'list'],
    ['firewall', 'test', '--from', '203.0.113.7', '--to', 'target', '--port', '9999'],
    ['firewall', 'test', '--from', '198.51.100.1', '--to', 'target', '--port', '22', '-o', 'columns=allowed'],
    ['firewall', 'delete', 'web', 'allow-ssh-from-203-0-113-0-24', '--yes'],
    ['firewall', 'allow', 'nonsense'],
  )
  await slipway('vm', 'delete', 'target', '--yes')
})

test('words of the API are accepted beside those of the CLI', async () => {
  for (const direction of ['outbound', 'egress']) {
    const name = `to-${direction}`
    const rule = await json('firewall', 'create', name, '--direction', direction)
    expect(rule).toMatchObject({ direction: 'egress' })
    await slipway('firewall', 'delete', name, '--yes')
  }
  const vm = ['vm', 'list', '-o', 'columns=name,state', '--state']
  expect((await slipway(...vm, 'shutoff')).stdout).toBe((await slipway(...vm, 'stopped')).stdout)
})

test('networks and subnets can be created, listed, renamed and deleted', async () => {
  await golden(
    'network.txt',
    ['network', 'create', 'training', '--cidr', '10.20.0.0/16'],
    ['subnet', 'create', 'training-a', '--network', 'training', '--cidr', '10.20.0.0/20', ...where],
    ['network', 'list'],
    ['subnet', 'show', 'training-a'],
    ['subnet', 'rename', 'training-a', 'training-b'],
    ['subnet', 'delete', 'training-b', '--yes'],
    ['network', 'delete', 'training', '--yes'],
  )
})

test('an address can be reserved, assigned to a VM, unassigned and deleted', async () => {
  await slipway('vm', 'create', 'web', '--type', 'a40.1x', ...where, '--ssh-key', publicKey)
  const { address } = await json('address', 'create', 'gateway', ...where)
  expect((await slipway('address', 'assign', 'gateway', 'web')).code).toBe(0)
  expect((await json('vm', 'show', 'web')).ssh_destination).toContain(`@${address}`)
  expect((await slipway('address', 'list')).stdout).toMatch(/gateway +\S+ +us-east1-a +web/)
  expect((await slipway('address', 'delete', 'gateway', '--yes')).stderr).toContain(
    'Unassign the address first',
  )
  expect((await slipway('address', 'unassign', 'gateway')).code).toBe(0)
  await slipway('vm', 'delete', 'web', '--yes')
  const create = ['vm', 'create', 'web-2', '--type', 'a40.1x', ...where, '--ssh-key', publicKey]
  await slipway(...create, '--address', 'gateway')
  const { network_interfaces } = await json('vm', 'show', 'web-2')
  expect(network_interfaces[0].ips[0].public_ipv4).toMatchObject({ address, type: 'static' })
  await slipway('vm', 'delete', 'web-2', '--yes')
  expect((await slipway('address', 'create', 'both')).code).toBe(2)
  expect((await slipway('address', 'delete', 'gateway', '--yes')).code).toBe(0)
})

test('vm console shows the console, types into it, and leaves with ~.', async () => {
  await slipway('vm', 'create', 'typist', '--type', 'a40.1x', ...where, '--ssh-key', publicKey)
  const console = (input: string, ...words: string[]) =>
    cli.runAs(['vm', 'console', 'typist', ...words], { env: cli.env, input })
  const typed = await console('hello\r~~x\r~.never')
  expect(typed).toMatchObject({ code: 0 })
  expect(typed.stderr).toContain('The console was closed.')
  const log = (await slipway('vm', 'log', 'typist', '--raw')).stdout
  expect(log).toContain('simulated: hello')
  expect(log).toContain('simulated: ~x')
  expect(log).not.toContain('never')
  expect(await console('~.', '--read')).toMatchObject({ code: 0 })
  await slipway('vm', 'stop', 'typist')
  expect((await slipway('vm', 'console', 'typist')).stderr).toContain('has no console because it is in')
  await slipway('vm', 'delete', 'typist', '--yes')
})

test('an invalid command line exits with 2 and a hint', async () => {
  await golden(
    'usage-errors.txt',
    ['vm', 'lst'],
    ['vm', 'list', '--colour'],
    ['vm', 'show'],
    ['vm', 'list', '-o', 'xml'],
    ['vm', 'create', '--ttl', 'soon'],
    ['vm', 'lst', '-o', 'json'],
  )
})

test('a capacity request waits in the queue, and can be claimed or cancelled', async () => {
  const vm = ['--type', 'a100.1x', ...where, '--ssh-key', publicKey]
  const held = await json('queue', 'create', 'queue-1', ...vm, '--hold', '--for', '2d')
  expect(held).toMatchObject({ on_available: 'hold', gpus_wanted: 1, request: { vm: { name: 'queue-1' } } })
  expect(await json('queue', 'wait', 'queue-1')).toMatchObject({ id: held.id, state: 'held', gpus_held: 1 })
  expect(await json('queue', 'list')).toMatchObject([{ id: held.id }])
  expect(await json('queue', 'show', held.id)).toMatchObject({ id: held.id, state: 'held' })
  expect((await slipway('queue', 'show', 'queue-1')).stdout).toMatch(/GPUs +1 of 1 held/)
  const operator = await slipway('admin', 'queue', '--family', 'a100', '-o', 'json')
  expect(JSON.parse(operator.stdout)).toMatchObject([{ id: held.id, family: 'a100' }])
  expect(await json('queue', 'claim', 'queue-1')).toMatchObject({ name: 'queue-1', state: 'STATE_RUNNING' })

  await slipway('vm', 'stop', 'queue-1')
  const start = await json('queue', 'start', 'queue-1', '--hold')
  expect(await slipway('queue', 'cancel', start.id, '--yes')).toMatchObject({ code: 0 })
  expect(await json('queue', 'show', start.id)).toMatchObject({ state: 'cancelled' })
  expect(await slipway('vm', 'delete', 'queue-1', '--yes')).toMatchObject({ code: 0 })

  const group = await json(
    'queue',
    'group',
    'queue-2',
    '--count',
    '2',
    '--image',
    'ubuntu24.04-nvidia',
    ...vm,
  )
  expect(group).toMatchObject({ gpus_wanted: 2, request: { instance_group: { name: 'queue-2' } } })
  expect(await json('queue', 'wait', group.id)).toMatchObject({ state: 'fulfilled' })
  expect((await slipway('queue', 'show', group.id)).stdout).toMatch(/group +queue-2/)
  expect(await slipway('group', 'delete', 'queue-2', '--yes')).toMatchObject({ code: 0 })
})
