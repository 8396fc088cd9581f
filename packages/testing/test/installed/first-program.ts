// A first program with the SDK: create a VM and a disk, attach it, list the events, and delete both.
import { ApiError, createClient, type Disk, type Vm } from '@slipway/sdk'

const { SLIPWAY_API_URL = '', SLIPWAY_ACCESS_KEY = '', SLIPWAY_PROJECT = '' } = process.env
const client = createClient({ baseUrl: SLIPWAY_API_URL, token: SLIPWAY_ACCESS_KEY })
const project = client.project(SLIPWAY_PROJECT)
const machine = {
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia:latest',
  ssh_public_key:
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvmWxvLnVPXnO3xXQ2n3yUoP1yT8kQ5cXqkqN3u9Ckm ada@laptop',
}

const creation = await project.vmCreate({ ...machine, name: 'first', type: 'a100.1x' })
const vm: Vm = (await project.wait(creation.operation)).result

const refusal = await project.vmCreate({ ...machine, name: 'second', type: 'a40.1x' }).catch((error) => error)
if (!(refusal instanceof ApiError)) throw new Error('there was an a40 in us-east1-a')

const { operation } = await project.diskCreate({ name: 'data', size: '10GiB', location: machine.location })
const disk: Disk = (await project.wait(operation)).result
const attachment = await project.vmAttachDisks(
  { vm_id: vm.id },
  { attach_disks: [{ disk_id: disk.id, attachment_type: 'data', mode: 'read-write' }] },
)
const { result: joined } = await project.wait(attachment.operation)

await project.wait((await project.vmDelete({ vm_id: vm.id })).operation)
await project.wait((await project.diskDelete({ disk_id: disk.id })).operation)

const events: string[] = []
for await (const event of project.events({ after: 0, resource_id: vm.id })) {
  events.push(event.type)
  if (event.type === 'vm.deleted') break
}
const left: Vm[] = await project.collect('vmList')
console.log(
  JSON.stringify({
    state: vm.state,
    code: refusal.code,
    fitsIn: refusal.availableLocations,
    isJoined: joined.disks.some(({ id }) => id === disk.id),
    events: events.filter((type) => ['vm.creating', 'vm.running', 'vm.deleted'].includes(type)),
    left: left.length,
  }),
)
