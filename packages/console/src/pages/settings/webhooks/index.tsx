import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { SettingsTabs } from '../../../features/page-tabs.tsx'
import { Secret } from '../../../features/webhooks/secret.tsx'
import { WebhookState, webhookPollMs } from '../../../features/webhooks/state.tsx'
import { eventSelectorText } from '../../../lib/event-kinds.ts'
import { curlCommand } from '../../../lib/shell.ts'
import { Button } from '../../../ui/button.tsx'
import { timestampColumn } from '../../../ui/columns/time-column.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Loaded } from '../../../ui/loaded.tsx'
import { Name } from '../../../ui/no-break.tsx'
import { Empty, Page } from '../../../ui/page.tsx'
import { Table } from '../../../ui/table.tsx'
import { CreateDialog } from './create-dialog.tsx'

export function Webhooks() {
  const projectId = useProjectId()
  const webhooks = useQuery({
    ...readAll('webhookList', { project_id: projectId }),
    refetchInterval: webhookPollMs,
  })
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState('')
  const create = (
    <Button
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      reason={whyNot}
      onClick={() => setCreating(true)}
    >
      Create webhook
    </Button>
  )
  return (
    <Page title="Settings" tabTitle="Webhooks" actions={create}>
      <SettingsTabs />
      <Loaded query={webhooks} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No webhooks yet"
              action={create}
              cli="slipway webhook create https://hooks.example.com/slipway"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/webhooks`, {
                url: 'https://hooks.example.com/slipway',
              })}
            >
              A webhook sends the project’s events to your URL. Each event is signed and delivered at least
              once. The events of a resource are delivered in order.
            </Empty>
          ) : (
            <Table
              label="Webhooks"
              rows={data}
              rowKey={(webhook) => webhook.id}
              columns={[
                {
                  key: 'url',
                  title: 'URL',
                  width: 'minmax(200px, 2fr)',
                  cell: (webhook) => (
                    <Link
                      to="/projects/$projectId/settings/webhooks/$webhookId"
                      params={{ projectId, webhookId: webhook.id }}
                      className="font-medium hover:text-accent-text hover:underline"
                    >
                      <Name text={webhook.url} />
                    </Link>
                  ),
                },
                {
                  key: 'types',
                  title: 'Events',
                  width: 'minmax(120px, 1fr)',
                  isFoldable: true,
                  cell: (webhook) => eventSelectorText(webhook.event_types),
                },
                {
                  key: 'state',
                  title: 'State',
                  width: 'minmax(280px, 2fr)',
                  cell: (webhook) => (
                    <span className="max-md:*:justify-end">
                      <WebhookState webhook={webhook} />
                    </span>
                  ),
                },
                { ...timestampColumn('Created', 'created_at'), isFoldable: true },
              ]}
            />
          )
        }
      </Loaded>
      {isCreating && (
        <CreateDialog projectId={projectId} onClose={() => setCreating(false)} onCreated={setSecret} />
      )}
      {secret && <Secret secret={secret} onClose={() => setSecret('')} />}
    </Page>
  )
}
