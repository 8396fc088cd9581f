import { expect, test } from 'vitest'
import { checkConfig, planChange } from '../src/engine/plan.ts'
import type { Private } from '../src/engine/row.ts'
import { resources } from '../src/resources/index.ts'
import { unknown, type Value, type Values } from '../src/values/types.ts'

const named = (name: string) => resources.find(({ row }) => row.name === name)!
const vm = named('vm')
const config: Values = {
  name: 'train-7',
  type: 'a100.1x',
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia',
  ssh_public_key: 'ssh-ed25519 AAAA ada\n',
}
/** The state after `config` was applied. */
const state: Values = {
  ...Object.fromEntries(vm.attributes.map(({ name }) => [name, null])),
  ...config,
  ...{ id: 'an id', project_id: 'a project', image: 'ubuntu24.04-nvidia:latest', state: 'STATE_RUNNING' },
  ...{ labels: {}, description: '', deletion_protection: false, disks: [], updated_at: 'then' },
  ...{ ssh_destination: 'ubuntu@198.18.0.1' },
}
const plan = (changes: Values, store: Private = {}, prior: Values = state) =>
  planChange(vm, prior, { ...config, ...changes }, store)

/** The attributes that a plan changes. */
const changes = ({ planned }: { planned: Values | null }) =>
  Object.keys(state).filter((name) => JSON.stringify(planned![name]) !== JSON.stringify(state[name]))

test('a value that is written differently and means the same is no change', () => {
  expect(plan({ ssh_public_key: 'ssh-ed25519 AAAA ada', location: 'any' })).toMatchObject({
    planned: state,
    replace: [],
    problems: [],
  })
  const disk = named('disk')
  const prior = {
    ...Object.fromEntries(disk.attributes.map(({ name }) => [name, null])),
    size: '1TiB',
    name: 'data',
  }
  expect(planChange(disk, prior, { ...prior, size: '1024GiB' }, {}).planned).toMatchObject({ size: '1TiB' })
})

test('labels change in place, and no other output becomes unknown', () => {
  const planned = plan({ labels: { team: 'ml' } })
  expect(planned.replace).toEqual([])
  expect(changes(planned)).toEqual(expect.arrayContaining(['labels', 'updated_at']))
  expect(planned.planned).toMatchObject({ ssh_destination: 'ubuntu@198.18.0.1', updated_at: unknown })
})

test('labels that are removed from the configuration are removed from the VM', () => {
  expect(plan({}, {}, { ...state, labels: { team: 'ml' } }).planned!.labels).toEqual({})
})

test('a change of the image or the subnet replaces the VM, and so does an image that is still unknown', () => {
  expect(plan({ image: 'ubuntu22.04-nvidia' }).replace).toEqual(['image'])
  expect(plan({ subnet_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01' }).replace).toEqual(['subnet_id'])
  expect(plan({ image: unknown }).replace).toEqual(['image'])
})

test('a reserved address changes in place, and the plan does not know whether the VM then has a dynamic one', () => {
  const address = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01'
  const prior = { ...state, public_ip: 'none' }
  const changed = plan({ public_address_id: address }, {}, prior)
  expect(changed).toMatchObject({ replace: [], problems: [], planned: { public_ip: unknown } })
  const removed = plan({}, {}, { ...prior, public_address_id: address })
  expect(removed).toMatchObject({ replace: [], planned: { public_address_id: null, public_ip: unknown } })
  const both = { ...config, public_address_id: address, public_ip: 'none' }
  expect(checkConfig(vm, both)).toMatchObject([{ attribute: 'public_ip' }])
  expect(checkConfig(vm, { ...both, public_ip: unknown })).toEqual([])
})

test('another type of the family needs allow_stopping, unless the VM is stopped; another family replaces the VM', () => {
  expect(plan({ type: 'a100.2x' }).problems).toMatchObject([{ attribute: 'type' }])
  expect(plan({ type: 'a100.2x', allow_stopping: true })).toMatchObject({ replace: [], problems: [] })
  const stopped = { ...state, state: 'STATE_SHUTOFF' }
  expect(plan({ type: 'a100.2x' }, {}, stopped)).toMatchObject({ replace: [], problems: [] })
  expect(plan({ type: 'a40.1x' })).toMatchObject({ replace: ['type'], problems: [] })
})

test('a protected VM cannot be planned for deletion or replacement', () => {
  const prior = { ...state, deletion_protection: true }
  expect(planChange(vm, prior, null, {}).problems).toMatchObject([{ attribute: 'deletion_protection' }])
  expect(plan({ image: 'ubuntu22.04-nvidia' }, {}, prior).problems).toHaveLength(1)
  expect(plan({ labels: { team: 'ml' }, deletion_protection: true }, {}, prior).problems).toEqual([])
})

test('after an import, a script that the service does not show is taken from the configuration', () => {
  const script = { startup_script: '#!/bin/sh\n' }
  expect(plan(script).replace).toEqual(['startup_script'])
  expect(plan(script, { isImported: true })).toMatchObject({ replace: [], planned: script })
  expect(
    plan(script, { isImported: true }, { ...state, startup_script: '#!/bin/bash\n' }).replace,
  ).toHaveLength(1)
})

test('a time to live that is removed from the configuration stays', () => {
  expect(plan({}, {}, { ...state, ttl_seconds: 3600 }).planned!.ttl_seconds).toBe(3600)
})

test('a VM that a failed apply left stopped is planned for a change', () => {
  expect(plan({}).planned!.state).toBe('STATE_RUNNING')
  expect(plan({}, { needsStart: true }).planned!.state).toBe(unknown)
})

test('with an instance template, fields that are not configured are known only after the apply', () => {
  const template = { name: 'train-7', instance_template_id: '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01' }
  expect(planChange(vm, null, template, {}).planned).toMatchObject({ type: unknown, labels: unknown })
  expect(planChange(vm, null, config, {}).planned).toMatchObject({ labels: {}, usd_per_hour: unknown })
})

test('a disk cannot shrink', () => {
  const disk = named('disk')
  const prior = {
    ...Object.fromEntries(disk.attributes.map(({ name }) => [name, null])),
    ...{ name: 'data', size: '20GiB', type: 'persistent-ssd' },
  }
  const { problems } = planChange(disk, prior, { ...prior, size: '10GiB' }, {})
  expect(problems).toMatchObject([{ attribute: 'size' }])
})

test('a custom image has exactly one source, and an address a location or a VM', () => {
  const image = (sources: Values) => checkConfig(named('custom_image'), { name: 'golden', ...sources })
  const id = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7c01'
  expect(image({ vm_id: id })).toEqual([])
  expect(image({ vm_id: unknown, disk_id: unknown })).toEqual([])
  expect(image({})).toMatchObject([{ detail: 'Set exactly one of vm_id, disk_id and snapshot_id.' }])
  expect(image({ vm_id: id, snapshot_id: id })).toHaveLength(1)
  expect(checkConfig(named('address'), { name: 'gateway' })).toMatchObject([
    { detail: 'Set exactly one of location and vm_id.' },
  ])
})

test('unknown values pass the checks of a configuration', () => {
  const unknowns: Values = Object.fromEntries(
    Object.keys(config).map((name): [string, Value] => [name, unknown]),
  )
  expect(checkConfig(vm, unknowns)).toEqual([])
  expect(checkConfig(vm, { ...config, ssh_public_key: 'no key' })).toMatchObject([
    { attribute: 'ssh_public_key' },
  ])
})
