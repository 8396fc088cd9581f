import type { FirewallRule } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { readAll } from '../../../api/read.ts'
import { useEndpointNames } from '../../../api/resource-names.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NetworkTabs } from '../../../features/page-tabs.tsx'
import { networkNameOf, ruleText } from '../../../lib/firewall-text.ts'
import { curlCommand, projectCommands, shellQuote } from '../../../lib/shell.ts'
import { Button, RowButton } from '../../../ui/button.tsx'
import { Confirm, submitProps } from '../../../ui/dialog.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Empty, Page, Section } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { RuleEditor } from './rule-editor.tsx'
import { Tester } from './tester.tsx'

/** Shows the rules as text, with an editor and a tester that shows which rule decides. */
export function Firewall() {
  const projectId = useProjectId()
  const rules = useQuery(readAll('firewallRuleList', { project_id: projectId }))
  const whyNot = useWhyNot('member')
  const [editing, setEditing] = useState<FirewallRule | 'new' | null>(null)
  const [decisiveId, setDecisiveId] = useState('')
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setEditing('new')}
    >
      Create rule
    </Button>
  )
  const listed = rules.data ?? []
  const group = (direction: FirewallRule['direction']) =>
    listed.filter((rule) => rule.direction === direction)
  return (
    <Page title="Network" actions={create}>
      <NetworkTabs />
      <Loaded query={rules}>
        {(_data) => (
          <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-[minmax(0,1fr)_320px]">
            <div className="flex min-w-0 flex-col gap-6">
              {listed.length === 0 ? (
                <Empty
                  title="No rules yet"
                  action={create}
                  cli="slipway firewall allow ssh"
                  curl={curlCommand('GET', `/v0.1/projects/${projectId}/vpc/firewall-rules`)}
                >
                  Inbound and outbound traffic is denied unless a rule allows it. Deny rules take precedence.
                </Empty>
              ) : (
                <>
                  <Rules
                    title="Inbound"
                    rules={group('ingress')}
                    {...{ projectId, whyNot, decisiveId }}
                    onEdit={setEditing}
                  />
                  <Rules
                    title="Outbound"
                    rules={group('egress')}
                    {...{ projectId, whyNot, decisiveId }}
                    onEdit={setEditing}
                  />
                  <p className="text-sm text-ink-muted">
                    Traffic is denied unless a rule allows it. Deny rules take precedence. Replies to allowed
                    traffic are allowed.
                  </p>
                </>
              )}
            </div>
            <Tester projectId={projectId} rules={listed} onDecided={setDecisiveId} />
          </div>
        )}
      </Loaded>
      {editing && (
        <RuleEditor
          projectId={projectId}
          rule={editing === 'new' ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
    </Page>
  )
}

interface RulesProps {
  title: string
  rules: FirewallRule[]
  projectId: string
  whyNot: string | undefined
  decisiveId: string
  onEdit: (rule: FirewallRule) => void
}

function Rules({ title, rules, projectId, whyNot, decisiveId, onEdit }: RulesProps) {
  const nameOf = useEndpointNames(projectId)
  const networks = useQuery(readAll('networkList', { project_id: projectId })).data
  const textOf = (rule: FirewallRule) => ruleText(rule, nameOf, networkNameOf(rule, networks))
  const [deleting, setDeleting] = useState<FirewallRule | null>(null)
  const remove = useOperation({
    projectId,
    run: (rule: FirewallRule) => client.firewallRuleDelete({ project_id: projectId, rule_id: rule.id }),
    done: (rule) => `Deleted rule ${rule.name}`,
    failed: (rule) => `Could not delete rule ${rule.name}`,
    invalidates: ['firewallRuleList'],
    showsErrors: true,
  })
  return (
    <Section title={title}>
      <ul className="card divide-y divide-line">
        {rules.length === 0 && (
          <li className="px-4 py-3 text-ink-muted">No rules. All {title.toLowerCase()} traffic is denied.</li>
        )}
        {rules.map((rule) => (
          <li
            key={rule.id}
            className={`flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2 ${rule.id === decisiveId ? 'bg-accent-soft' : ''}`}
          >
            <span className="min-w-0 flex-1 basis-72">
              <span className={`block ${rule.action === 'deny' ? 'text-red-text' : ''}`}>{textOf(rule)}</span>
              <span className="block text-sm text-ink-muted">{rule.name}</span>
            </span>
            <StateBadge state={rule.state} />
            <span className="flex gap-1">
              <RowButton verb="Edit" name={rule.name} reason={whyNot} onClick={() => onEdit(rule)} />
              <RowButton
                verb="Delete"
                name={rule.name}
                kind="danger"
                reason={whyNot}
                onClick={() => setDeleting(rule)}
              />
            </span>
          </li>
        ))}
      </ul>
      {deleting && (
        <Confirm
          isOpen
          onClose={() => setDeleting(null)}
          title={`Delete rule ${deleting.name}`}
          action="Delete rule"
          commands={projectCommands(projectId, {
            cli: `slipway firewall delete ${shellQuote(deleting.name)}`,
            method: 'DELETE',
            path: `/vpc/firewall-rules/${deleting.id}`,
          })}
          {...submitProps(remove, deleting, () => setDeleting(null))}
        >
          <p>
            This rule will no longer apply: “{textOf(deleting)}”. Connections that depend on it will be
            interrupted.
          </p>
        </Confirm>
      )}
    </Section>
  )
}
