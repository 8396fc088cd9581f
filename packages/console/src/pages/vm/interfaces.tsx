import type { Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { readAll } from '../../api/read.ts'
import { useEndpointNames } from '../../api/resource-names.ts'
import { useQuery } from '../../api/use-query.ts'
import { rulesOfInterface, ruleText } from '../../lib/firewall-text.ts'
import { Copyable } from '../../ui/copy.tsx'
import { Section } from '../../ui/page.tsx'

export function Interfaces({ vm }: { vm: Vm }) {
  const projectId = vm.project_id
  const rules = useQuery(readAll('firewallRuleList', { project_id: projectId }))
  const nameOf = useEndpointNames(projectId)
  return (
    <Section
      title="Network"
      actions={
        <Link to="/projects/$projectId/network/firewall" params={{ projectId }} className="link text-sm">
          Edit firewall
        </Link>
      }
    >
      {vm.network_interfaces.map((nic) => {
        const ip = nic.ips[0]
        const applicableRules = rulesOfInterface(rules.data ?? [], vm, nic)
        return (
          <div key={nic.id} className="card px-4 py-3">
            <dl className="grid grid-cols-2 gap-x-4 gap-y-2 md:grid-cols-3 lg:grid-cols-5">
              <Pair label="Interface">{nic.name}</Pair>
              <Pair label="Subnet">{nameOf(nic.subnet)}</Pair>
              <Pair label="Private address">
                <Copyable text={ip?.private_ipv4.address ?? ''} />
              </Pair>
              <Pair
                label={ip?.public_ipv4.type === 'static' ? 'Public address (reserved)' : 'Public address'}
              >
                <Copyable text={ip?.public_ipv4.address ?? ''} />
              </Pair>
              <Pair label="MAC address">
                <span className="mono">{nic.mac_address}</span>
              </Pair>
            </dl>
            <p className="mt-3 mb-1 text-sm text-ink-muted">Firewall rules that apply</p>
            <ul className="flex flex-col gap-0.5">
              {applicableRules.map((rule) => (
                <li key={rule.id} className="flex items-baseline gap-2">
                  <span className="w-16 shrink-0 text-sm text-ink-muted">
                    {rule.direction === 'ingress' ? 'inbound' : 'outbound'}
                  </span>
                  <span className="flex min-w-0 flex-wrap items-baseline gap-x-2">
                    <span>{ruleText(rule, nameOf)}</span>
                    <span className="truncate text-sm text-ink-muted">{rule.name}</span>
                  </span>
                </li>
              ))}
              {rules.data && applicableRules.length === 0 && (
                <li>No rules. All inbound and outbound traffic is denied.</li>
              )}
            </ul>
          </div>
        )
      })}
    </Section>
  )
}

function Pair({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-sm text-ink-muted">{label}</dt>
      <dd className="flex min-h-6 items-center break-words">{children}</dd>
    </div>
  )
}
