import type { FirewallRule, RouteBody, Vm } from '@slipway/sdk'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { client } from '../../../api/client.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NameList } from '../../../features/name-fields/name-list.tsx'
import { Button } from '../../../ui/button.tsx'
import { ErrorNote } from '../../../ui/error.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { DirectionField } from './direction-field.tsx'

type Packet = RouteBody<'firewallRuleTest'>

/** Shows whether the rules allow a connection. The server evaluates them, so the result is what it enforces. */
export function Tester({
  projectId,
  rules,
  onDecided,
}: {
  projectId: string
  rules: FirewallRule[]
  onDecided: (ruleId: string) => void
}) {
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const [direction, setDirection] = useState<Packet['direction']>('ingress')
  const [protocol, setProtocol] = useState<Packet['protocol']>('tcp')
  const [source, setSource] = useState('203.0.113.7')
  const [destination, setDestination] = useState('')
  const [port, setPort] = useState('22')
  const idOf = (text: string) => vms.data?.find((vm) => vm.name === text.trim())?.id ?? text.trim()
  const test = useMutation({
    mutationFn: () =>
      client.firewallRuleTest(
        { project_id: projectId },
        {
          direction,
          protocol,
          source: idOf(source),
          destination: idOf(destination),
          ...(protocol !== 'icmp' && port && { destination_port: Number(port) }),
        },
      ),
    onSuccess: ({ rule_id }) => onDecided(rule_id),
    onError: () => onDecided(''),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (source && destination) test.mutate()
  }
  const missing = [...(source ? [] : ['a source']), ...(destination ? [] : ['a destination'])]
  const reason = missing.length === 0 ? undefined : `Choose ${missing.join(' and ')}`
  const rule = rules.find(({ id }) => id === test.data?.rule_id)
  return (
    <form
      onSubmit={submit}
      noValidate
      aria-label="Rule tester"
      className="card sticky top-6 flex flex-col gap-3 p-4"
    >
      <h2 className="text-lg font-semibold">Test a connection</h2>
      <div className="grid grid-cols-2 gap-3">
        <DirectionField value={direction} onChange={setDirection} />
        <SelectField
          label="Protocol"
          value={protocol}
          onChange={(value) => setProtocol(value as typeof protocol)}
          choices={['tcp', 'udp', 'icmp'].map((value) => ({ value, label: value }))}
        />
      </div>
      <AddressField label="Source" vms={vms.data ?? []} value={source} onChange={setSource} />
      <AddressField label="Destination" vms={vms.data ?? []} value={destination} onChange={setDestination} />
      {protocol !== 'icmp' && (
        <TextField label="Destination port" inputMode="numeric" value={port} onChange={setPort} />
      )}
      <Button type="submit" isBusy={test.isPending} reason={reason}>
        Test
      </Button>
      <div aria-live="polite">
        {!test.error && !test.data && (
          <p className="text-sm text-ink-muted">
            {reason ? `${reason}.` : 'The result and the deciding rule appear here.'}
          </p>
        )}
        {test.error && <ErrorNote error={test.error} />}
        {test.data && (
          <p className="flex items-start gap-2">
            {test.data.allowed ? (
              <Icon name="circle-check" size={16} className="mt-0.5 shrink-0 text-green-text" />
            ) : (
              <Icon name="circle-x" size={16} className="mt-0.5 shrink-0 text-red-text" />
            )}
            <span>
              <b className="font-medium">{test.data.allowed ? 'Allowed' : 'Denied'}</b>{' '}
              {rule ? `by ${rule.name}.` : 'because no rule allows it.'}
            </span>
          </p>
        )}
      </div>
    </form>
  )
}

interface AddressFieldProps {
  label: string
  vms: Vm[]
  value: string
  onChange: (value: string) => void
}

function AddressField({ label, vms, value, onChange }: AddressFieldProps) {
  const listId = useId()
  return (
    <>
      <TextField
        label={label}
        list={listId}
        value={value}
        onChange={onChange}
        placeholder="IP address or VM name"
      />
      <NameList id={listId} names={vms.map(({ name }) => name)} text={value} />
    </>
  )
}
