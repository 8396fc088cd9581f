import { anywhere, parseCidr } from '@slipway/contract/cidr'
import type { FirewallEndpoint, FirewallRule, RouteBody } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { read, readAll } from '../../../api/read.ts'
import { useEndpointNames } from '../../../api/resource-names.ts'
import { useQuery } from '../../../api/use-query.ts'
import { networkNameOf, ruleText } from '../../../lib/firewall-text.ts'
import { nameProblem } from '../../../lib/names.ts'
import { projectCommands } from '../../../lib/shell.ts'
import { Button } from '../../../ui/button.tsx'
import { FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../../ui/field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { DirectionField } from './direction-field.tsx'
import { EndpointField, useEndpoints } from './endpoint-field.tsx'
import { type Preset, presets } from './presets.ts'
import { changeRuleCommand, createRuleCommand } from './rule-command.ts'

type RuleBody = RouteBody<'firewallRuleCreate'>
type Protocol = RuleBody['protocols'][number]
const protocols: Protocol[] = ['tcp', 'udp', 'icmp']

const remotePlaceholder = 'anywhere, IP, CIDR or VM name'
const localPlaceholder = 'every VM, IP, CIDR or VM name'

/** Splits text such as "22, 3000-8080". */
const portsOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

interface RuleEditorProps {
  projectId: string
  rule: FirewallRule | null
  onClose: () => void
}

export function RuleEditor({ projectId, rule, onClose }: RuleEditorProps) {
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const nameOf = useEndpointNames(projectId)
  const [name, setName] = useState(rule?.name ?? '')
  const [action, setAction] = useState<RuleBody['action']>(rule?.action ?? 'allow')
  const [direction, setDirection] = useState<RuleBody['direction']>(rule?.direction ?? 'ingress')
  const [network, setNetwork] = useState(rule?.vpc_network_id ?? '')
  const [chosen, setChosen] = useState<Protocol[]>(rule?.protocols ?? ['tcp'])
  const sources = useEndpoints(projectId, rule?.sources ?? [])
  const destinations = useEndpoints(projectId, rule?.destinations ?? [])
  const [ports, setPorts] = useState((rule?.destination_ports ?? []).join(', '))
  const [sourcePorts, setSourcePorts] = useState((rule?.source_ports ?? []).join(', '))
  const hasPorts = chosen.some((protocol) => protocol !== 'icmp')
  const myAddress = useMyAddress()
  const applyPreset = ({ name: presetName, port }: Preset) => {
    setName(presetName)
    setAction('allow')
    setDirection('ingress')
    setChosen(['tcp'])
    setPorts(port)
    setSourcePorts('')
    // A preset allows only the user's own address, unless a source is already chosen.
    if (sources.all.length === 0 && myAddress) sources.replace([{ cidr: myAddress, resource_id: '' }])
    destinations.replace([{ cidr: anywhere, resource_id: '' }])
  }
  const vpc_network_id = network || networks.data?.at(-1)?.id || ''
  const networkName = networks.data?.find(({ id }) => id === vpc_network_id)?.name ?? vpc_network_id

  const parts = {
    protocols: chosen,
    sources: sources.all.map(toRequest),
    destinations: destinations.all.map(toRequest),
    source_ports: hasPorts ? portsOf(sourcePorts) : [],
    destination_ports: hasPorts ? portsOf(ports) : [],
  }
  const save = useOperation({
    projectId,
    run: () =>
      rule
        ? client.firewallRuleUpdate({ project_id: projectId, rule_id: rule.id }, { name, ...parts })
        : client.firewallRuleCreate(
            { project_id: projectId },
            { name, action, direction, vpc_network_id, ...parts },
          ),
    done: () => `Rule ${name} is active`,
    failed: () => `Could not apply rule ${name}`,
    invalidates: ['firewallRuleList'],
    showsErrors: true,
  })
  const missing = [
    ...(chosen.length === 0 ? ['a protocol'] : []),
    ...(sources.all.length === 0 ? ['a source'] : []),
    ...(destinations.all.length === 0 ? ['a destination'] : []),
  ]
  const problem =
    (name === '' ? 'Enter a name' : nameProblem(name)) ||
    (sources.problem || destinations.problem ? 'Correct the source or destination' : '') ||
    (missing.length > 0 ? `Choose ${missing.join(' and ')}` : '') ||
    (vpc_network_id === '' ? 'Loading networks' : '') ||
    (rule && JSON.stringify({ name, ...parts }) === JSON.stringify(savedParts(rule)) ? 'No changes yet' : '')
  const isOpenToAll =
    action === 'allow' && direction === 'ingress' && sources.all.some(({ cidr }) => cidr === anywhere)
  return (
    <FormDialog
      isOpen
      isWide
      onClose={onClose}
      title={rule ? `Edit rule ${rule.name}` : 'Create rule'}
      action={rule ? 'Save rule' : 'Create rule'}
      {...submitProps(save, undefined, onClose)}
      reason={problem || undefined}
      commands={
        rule
          ? projectCommands(projectId, {
              cli: changeRuleCommand(rule, { name, ...parts }, nameOf),
              method: 'PATCH',
              path: `/vpc/firewall-rules/${rule.id}`,
              body: { name, ...parts },
              terraform: 'firewall_rule',
              changes: rule.name,
            })
          : projectCommands(projectId, {
              cli: createRuleCommand({ name, action, direction, ...parts }, networkName, nameOf),
              path: '/vpc/firewall-rules',
              body: { name, action, direction, vpc_network_id, ...parts },
              terraform: 'firewall_rule',
            })
      }
    >
      <p
        aria-live="polite"
        className="rounded-md border border-accent/40 bg-accent-soft px-3 py-2 font-medium"
      >
        {missing.length === 0
          ? `${ruleText({ action, direction, vpc_network_id, ...parts }, nameOf, networkNameOf({ vpc_network_id }, networks.data))}.`
          : `Choose ${missing.join(' and ')} to preview the rule.`}
      </p>
      {isOpenToAll && (
        <WorldWarning
          opened={hasPorts ? portText(parts.destination_ports) : 'ICMP'}
          myAddress={hasPorts ? myAddress : ''}
          onLimit={() => sources.replace([{ cidr: myAddress, resource_id: '' }])}
        />
      )}
      {!rule && (
        <div className="flex flex-wrap items-center gap-2">
          <span className="text-sm text-ink-muted">Presets</span>
          {presets.map((preset) => (
            <Button key={preset.title} size="small" onClick={() => applyPreset(preset)}>
              {preset.title}
              <span className="figures font-normal text-ink-muted">{preset.port}</span>
            </Button>
          ))}
        </div>
      )}
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        problem={nameProblem(name)}
        autoComplete="off"
        autoFocus={!rule}
      />
      {!rule && (
        <div className="grid gap-4 sm:grid-cols-[1fr_1fr_1.5fr]">
          <SelectField
            label="Action"
            value={action}
            onChange={(value) => setAction(value as typeof action)}
            choices={[
              { value: 'allow', label: 'Allow' },
              { value: 'deny', label: 'Deny' },
            ]}
          />
          <DirectionField value={direction} onChange={setDirection} />
          <SelectField
            label="Network"
            value={vpc_network_id}
            onChange={setNetwork}
            choices={(networks.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
          />
        </div>
      )}
      <fieldset>
        <legend className="mb-1 text-sm font-medium">Protocols</legend>
        <div className="flex gap-6">
          {protocols.map((protocol) => (
            <CheckField
              key={protocol}
              label={protocol}
              isChecked={chosen.includes(protocol)}
              onChange={(isChecked) =>
                setChosen(protocols.filter((each) => (each === protocol ? isChecked : chosen.includes(each))))
              }
            />
          ))}
        </div>
      </fieldset>
      {hasPorts && (
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            label="Destination ports"
            value={ports}
            onChange={setPorts}
            placeholder="all"
            hint="Example: 22, 3000-8080"
            isMono
          />
          <TextField
            label="Source ports"
            value={sourcePorts}
            onChange={setSourcePorts}
            placeholder="all"
            hint="Usually empty"
            isMono
          />
        </div>
      )}
      <div className="grid gap-4">
        <EndpointField
          label="Source"
          projectId={projectId}
          endpoints={sources}
          myAddress={direction === 'ingress' ? myAddress : ''}
          placeholder={direction === 'ingress' ? remotePlaceholder : localPlaceholder}
          localNetwork={direction === 'ingress' ? '' : vpc_network_id}
        />
        <EndpointField
          label="Destination"
          projectId={projectId}
          endpoints={destinations}
          placeholder={direction === 'ingress' ? localPlaceholder : remotePlaceholder}
          localNetwork={direction === 'ingress' ? vpc_network_id : ''}
        />
      </div>
    </FormDialog>
  )
}

const portText = (ports: string[]): string =>
  ports.length === 0 ? 'every port' : `${ports.length === 1 ? 'port' : 'ports'} ${ports.join(', ')}`

/** Returns the user's address as the server sees it; empty if it cannot be used in rules. */
function useMyAddress(): string {
  const root = useQuery(read('rootGet', {}))
  const address = root.data?.caller.address ?? ''
  return parseCidr(address) ? address : ''
}

interface WorldWarningProps {
  opened: string
  myAddress: string
  onLimit: () => void
}

function WorldWarning({ opened, myAddress, onLimit }: WorldWarningProps) {
  return (
    <div
      role="alert"
      className="flex flex-wrap items-center justify-between gap-2 rounded-md border border-amber/50 bg-amber-soft p-3 text-sm"
    >
      <p className="flex items-start gap-2">
        <Icon name="triangle-alert" size={16} className="mt-0.5 shrink-0 text-amber-text" />
        <span>
          This opens {opened} to the whole internet.
          {opened !== 'ICMP' && ' Anyone can connect. Limit the source to addresses that you trust.'}
        </span>
      </p>
      {myAddress && (
        <Button size="small" onClick={onLimit}>
          Only my address ({myAddress})
        </Button>
      )}
    </div>
  )
}

/** Returns what the form sends for a rule without changes. */
const savedParts = (rule: FirewallRule) => ({
  name: rule.name,
  protocols: rule.protocols,
  sources: rule.sources.map(toRequest),
  destinations: rule.destinations.map(toRequest),
  source_ports: rule.source_ports,
  destination_ports: rule.destination_ports,
})

const toRequest = ({ cidr, resource_id }: FirewallEndpoint) => (resource_id ? { resource_id } : { cidr })
