import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { credentialsOf, Launcher, readyLine } from '@slipway/testing/launcher.ts'
import { simulatedLocation } from '@slipway/testing/real-server.ts'
import { resourcesOf, vmBody } from '@slipway/testing/resources.ts'
import { useService } from '@slipway/testing/service.ts'
import { afterAll, expect, test } from 'vitest'

const launcher = new Launcher()
afterAll(() => launcher.clear())

const models = ['A100 40GB PCIe']
const east = simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models })
const west = simulatedLocation({ name: 'us-west1-a', publicIpv4: '198.18.64.0/18', models })

test('SIGHUP reads the locations again, and a bad file changes nothing and says why', async () => {
  const database = await createDatabase()
  const dataDir = launcher.newDataDir()
  const file = join(launcher.dir, 'slipway.toml')
  writeFileSync(file, east)
  const program = launcher.start(['--port', '0', '--data-dir', dataDir, '--config', file], {
    env: { DATABASE_URL: database.url },
  })
  await program.until(readyLine)
  const { api_url, access_key, project_id } = credentialsOf(dataDir)
  const call = async (path: string, body?: object) => {
    const response = await fetch(`${api_url}/v0.1/projects/${project_id}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${access_key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const bodyAt = (location: string) => vmBody({ location, type: 'a100.1x' })
  const createAt = (location: string) => call('/vms', bodyAt(location))
  const reload = async (text: string, expected: RegExp) => {
    writeFileSync(file, text)
    program.signal('SIGHUP')
    return program.until(expected)
  }
  expect((await createAt('us-west1-a')).status).toBe(400)

  await reload(east + west, /"added":\["us-west1-a"\].*"msg":"locations reloaded"/)
  const created = await eventually(async () => {
    const response = await createAt('us-west1-a')
    return response.status === 200 && response.body
  })
  const { operation } = created as unknown as { operation: { operation_id: string } }
  const ended = await call(`/operations/${operation.operation_id}?wait=30`)
  expect(ended.body).toMatchObject({ state: 'SUCCEEDED' })

  await reload(`${east}${west}enginee = "qemu"`, /nothing was changed: [^"]*enginee/)
  const qemu = west.replace('engine = "simulated"', 'engine = "qemu"').replace('[location.simulated]', '')
  await reload(
    east + qemu.slice(0, qemu.indexOf('boot_ms')),
    /nothing was changed: location us-west1-a: changes to a location with the qemu engine require a restart/,
  )
  expect((await createAt('us-west1-a')).status).toBe(200)

  const output = await reload(
    `[limits]\nburst = 7\n${east}`,
    /"settings":\["limits"\].*restart to apply them/,
  )
  expect(output).toMatch(/"removed":\["us-west1-a"\]/)
  expect((await createAt('us-east1-a')).status).toBe(200)
  expect(await program.end('SIGTERM')).toBe(0)
  await database.drop()
}, 120_000)

test('operations of a removed location wait until it is added again, and those of other locations continue', async () => {
  const service = await useService()
  await settle(service)
  const resources = resourcesOf(service)
  const { server, config } = service
  const all = config.locations
  const kept = all.filter(({ name }) => name !== 'us-west1-a')
  const id = await resources.newVm({ location: 'us-west1-a' })

  expect(await server.reload({ ...config, locations: kept })).toMatchObject({ removed: ['us-west1-a'] })
  const deletion = await resources.removeVm(id)
  await resources.newVm({ location: 'us-east1-a' })
  const [waiting] = await service.sql(`SELECT attempts FROM operations WHERE id = $1`, [
    deletion.operation.operation_id,
  ])
  expect(waiting).toEqual({ attempts: 0 })

  expect(await server.reload({ ...config, locations: all })).toMatchObject({ added: ['us-west1-a'] })
  await resources.succeeded(deletion)
  await resources.newVm({ location: 'us-west1-a' })
  await settle(service)
  await checkInvariants(service)
})

test('a location whose settings changed gets a new engine, and a change that its VMs do not allow has no effect', async () => {
  const service = await useService()
  await settle(service)
  const resources = resourcesOf(service)
  const { server, config } = service
  const { engines } = server.services
  await resources.newVm({ location: 'us-east1-a' })
  const before = new Map(engines)
  const [first, ...others] = structuredClone(config.locations)
  const incus = { name: first!.name, description: '', storage: 'shared', publicIpv4: '', engine: 'incus' }
  // This path exists, but is not a socket of Incus.
  const socket = launcher.dir
  await expect(
    server.reload({
      ...config,
      locations: [
        { ...incus, incus: { ...incusDefaults, socket } },
        { ...others[0]!, description: 'New' },
        others[1]!,
      ] as never,
    }),
  ).rejects.toThrow('cannot change the engine of us-east1-a')
  expect(new Map(engines)).toEqual(before)

  others[0]!.description = 'New'
  const changes = await server.reload({ ...config, locations: [first!, ...others] })
  expect(changes).toEqual({ added: [], changed: ['us-west1-a'], removed: [], needRestart: [] })
  expect(engines.get('us-west1-a')).not.toBe(before.get('us-west1-a'))
  await resources.newVm({ location: 'us-west1-a' })
  await settle(service)
  await checkInvariants(service)
})

const incusDefaults = {
  ...{ urls: [], clientCertFile: '', clientKeyFile: '', serverCertFile: '', project: 'slipway' },
  ...{
    instanceType: 'container',
    storagePool: 'default',
    diskPool: '',
    sharedVolumePool: '',
    profiles: [],
    gpus: [],
  },
  ...{ allowUnfilteredInternal: false, networkLimits: true },
}
