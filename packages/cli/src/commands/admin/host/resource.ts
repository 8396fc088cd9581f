import type { Host } from '@slipway/sdk'
import type { Resource } from '../../../core/resource.ts'
import { ageOf } from '../../../output/text.ts'

export const hosts: Resource<Host> = {
  noun: 'host',
  title: 'host',
  example: 'us-east1-a-a100-1',
  otherExample: 'us-east1-a-a100-2',
  columns: [
    { name: 'name', value: (host) => host.name },
    { name: 'location', value: (host) => host.location },
    { name: 'engine', value: (host) => host.engine, hideOrder: 2 },
    { name: 'state', value: (host) => host.state, isState: true },
    { name: 'cordoned', value: (host) => (host.schedulable ? 'no' : 'yes') },
    {
      name: 'gpus',
      value: (host) => `${freeGpus(host)}/${host.gpus.length} free`,
    },
    { name: 'model', value: (host) => host.gpus[0]?.model, hideOrder: 1 },
    {
      name: 'reported',
      value: (host) => (host.last_report_at ? `${ageOf(host.last_report_at)} ago` : 'never'),
      hideOrder: 3,
    },
    { name: 'id', value: (host) => host.id },
  ],
  route: 'adminHostList',
  list: (cli) => cli.operator.collect('adminHostList', {}),
  named: ({ id, name, location }) => ({ id, name, hint: location }),
  fields: hostFields,
}

/** GPUs of a host that accepts no new VMs do not count as free. */
const freeGpus = ({ schedulable, state, gpus }: Host): number =>
  schedulable && state === 'up' ? gpus.filter((gpu) => gpu.state === 'free').length : 0

function hostFields(host: Host): [string, string][] {
  return [
    ['Name', host.name],
    ['Id', host.id],
    ['State', host.state],
    ['Location', host.location],
    ['Engine', host.engine],
    ['Cordoned', host.schedulable ? 'no' : 'yes'],
    ['Last report', host.last_report_at || 'never'],
    ...(host.note ? [['Note', host.note] satisfies [string, string]] : []),
    ...(host.note_at ? [['Noted', `${host.note_at} by ${host.note_by}`] satisfies [string, string]] : []),
    ...(host.maintenance_at
      ? [
          ['Maintenance', `${host.maintenance_at} ${host.maintenance_note}`.trimEnd()] satisfies [
            string,
            string,
          ],
        ]
      : []),
    ...(host.forgotten_at ? [['Forgotten', host.forgotten_at] satisfies [string, string]] : []),
    [
      'GPUs',
      host.gpus
        .map((gpu) => `${gpu.pci_address}  ${gpu.model}  ${gpu.state}  ${gpu.vm_id}`.trimEnd())
        .join('\n') || '-',
    ],
  ]
}
