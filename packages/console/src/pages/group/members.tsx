import type { InstanceGroup, Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { isSimulatedAddress, publicAddressOf } from '../../lib/addresses.ts'
import { sshCommands } from '../../lib/guest-commands.ts'
import { CommandTabs } from '../../ui/commands.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Section } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'

type Member = InstanceGroup['members'][number]

/** The members in rank order, each with its SSH command. */
export function Members({ group, vms }: { group: InstanceGroup; vms: Vm[] }) {
  const vmOf = ({ vm_id }: Member) => vms.find(({ id }) => id === vm_id)
  const columns: Column<Member>[] = [
    {
      key: 'name',
      title: 'Name',
      width: 'minmax(140px, 1fr)',
      cell: (member) => (
        <Link
          to="/projects/$projectId/vms/$vmId"
          params={{ projectId: group.project_id, vmId: member.vm_id }}
          className="font-medium hover:text-accent-text hover:underline"
        >
          {member.name}
        </Link>
      ),
    },
    { key: 'rank', title: 'Rank', width: '70px', align: 'right', cell: ({ rank }) => rank },
    {
      key: 'state',
      title: 'State',
      width: '150px',
      cell: (member) => <StateBadge state={member.state} since={vmOf(member)?.updated_at} />,
    },
    {
      key: 'address',
      title: 'Private address',
      width: '160px',
      cell: ({ private_address }) => <Copyable text={private_address} />,
    },
    {
      key: 'ssh',
      title: 'SSH',
      width: 'minmax(220px, 2fr)',
      isFoldable: true,
      cell: (member) => <SshLine vm={vmOf(member)} />,
    },
  ]
  return (
    <Section
      title="Members"
      about="Rank 0 is the head node. On every member, MASTER_ADDR is the head node’s address."
    >
      {group.members.length === 0 ? (
        <p className="card px-4 py-3 text-ink-muted">The group has no members. Resize it to add some.</p>
      ) : (
        <>
          <Table label="Members" rows={group.members} rowKey={({ vm_id }) => vm_id} columns={columns} />
          <CommandTabs label="Use the group" lines={groupCommands(group)} />
        </>
      )}
    </Section>
  )
}

function SshLine({ vm }: { vm: Vm | undefined }) {
  if (!vm) return <span className="text-ink-muted">–</span>
  if (isSimulatedAddress(publicAddressOf(vm)))
    return <span className="text-ink-muted">This simulated VM has no SSH.</span>
  const command = sshCommands(vm).find(([title]) => title === 'SSH')?.[1] ?? ''
  return <Copyable text={command} label={`Copy the SSH command for ${vm.name}`} />
}

/** Returns titled commands: one to run on each member, and one to reach all members from a terminal. */
const groupCommands = ({ members }: InstanceGroup): [string, string][] => [
  [
    'On each VM',
    'set -a; . /run/slipway/group.env\ntorchrun --nnodes $NNODES --node-rank $NODE_RANK \\\n  --master-addr $MASTER_ADDR --master-port 29500 train.py',
  ],
  [
    'From your terminal',
    `for vm in ${members.map(({ name }) => name).join(' ')}; do\n  slipway vm ssh $vm -- nvidia-smi --list-gpus\ndone`,
  ],
]
