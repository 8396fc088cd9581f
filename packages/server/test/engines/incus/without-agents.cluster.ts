import { randomUUID } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ClusterBench, patienceMs, retrying, wanted } from '../../support/incus/cluster-bench.ts'

let cluster: ClusterBench
beforeAll(async () => {
  cluster = await ClusterBench.open({ hasAgents: false })
}, 180_000)
afterAll(() => cluster?.close(), 60_000)

test('a network that was left incomplete when a member failed is created again when the member is back', {
  timeout: 180_000,
}, async () => {
  const [asked, , away] = cluster.members
  const spec = cluster.specOn('m1')
  const networkId = randomUUID()
  spec.network = { ...spec.network, networkId, subnetCidr: '10.77.0.0/24', gateway: '10.77.0.1' }
  spec.network.privateAddress = '10.77.0.5'
  const status = async () => {
    const networks = JSON.parse(await asked!.cli('query', '/1.0/networks?recursion=1')) as {
      config: Record<string, string>
      status: string
    }[]
    return networks.find(({ config }) => config['user.slipway.network'] === networkId)?.status
  }
  await away!.kill()
  await eventually(async () => {
    await expect(cluster.engine.ensureVm(spec, wanted, cluster.at(1))).rejects.toMatchObject({
      kind: 'unavailable',
    })
    return (await status()) === 'Errored'
  }, patienceMs)
  await away!.start()
  expect(await retrying(() => cluster.engine.ensureVm(spec, wanted, cluster.at(1)))).toMatchObject({
    power: 'running',
  })
  expect(await status()).toBe('Created')
  await retrying(() => cluster.engine.removeVm(spec, cluster.at(2)))
})
