import type { Webhook, WebhookDelivery } from '@slipway/sdk'
import { Link, useParams } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { read, readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { useProjectId, useWhyNot } from '../app/me.ts'
import { Button } from '../ui/button.tsx'
import { curlLine } from '../ui/command-lines.tsx'
import { Confirm, FormDialog } from '../ui/dialog.tsx'
import { ErrorState } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'
import { Empty, Page, Skeleton } from '../ui/page.tsx'
import { SettingsTabs } from '../ui/page-tabs.tsx'
import { SecretDialog } from '../ui/secret.tsx'
import { StateBadge } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { When } from '../ui/time.tsx'

export function Webhooks() {
  const projectId = useProjectId()
  const webhooks = useQuery(readAll('webhookList', { project_id: projectId }))
  const whyNot = useWhyNot('admin')
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState('')
  const create = (
    <Button kind="primary" icon={<Plus size={16} />} reason={whyNot} onClick={() => setCreating(true)}>
      Create webhook
    </Button>
  )
  return (
    <Page title="Settings" actions={create}>
      <SettingsTabs />
      {webhooks.error && !webhooks.data ? (
        <ErrorState error={webhooks.error} onRetry={() => webhooks.refetch()} />
      ) : !webhooks.data ? (
        <Skeleton rows={3} />
      ) : webhooks.data.length === 0 ? (
        <Empty
          title="No webhook yet"
          action={create}
          cli="slipway webhook create https://hooks.example.com/slipway"
          curl={curlLine('POST', `/v0.1/projects/${projectId}/webhooks`, {
            url: 'https://hooks.example.com/slipway',
          })}
        >
          A webhook sends the project’s events to a URL of yours, signed, at least once, in order for each
          resource.
        </Empty>
      ) : (
        <Table
          label="Webhooks"
          rows={webhooks.data}
          rowKey={(webhook) => webhook.id}
          columns={[
            {
              key: 'url',
              title: 'URL',
              width: 'minmax(220px, 3fr)',
              cell: (webhook) => (
                <Link
                  to="/projects/$projectId/settings/webhooks/$webhookId"
                  params={{ projectId, webhookId: webhook.id }}
                  className="font-medium hover:text-accent-text hover:underline"
                >
                  {webhook.url}
                </Link>
              ),
            },
            {
              key: 'types',
              title: 'Events',
              width: 'minmax(120px, 1fr)',
              cell: (webhook) => webhook.event_types.join(', ') || 'all',
            },
            {
              key: 'state',
              title: 'State',
              width: '110px',
              cell: (webhook) => <StateBadge state={webhook.state} />,
            },
            {
              key: 'since',
              title: 'Created',
              width: '200px',
              align: 'right',
              cell: (webhook) => <When iso={webhook.created_at} />,
            },
          ]}
        />
      )}
      {isCreating && (
        <CreateDialog projectId={projectId} onClose={() => setCreating(false)} onCreated={setSecret} />
      )}
      {secret && <Secret secret={secret} onClose={() => setSecret('')} />}
    </Page>
  )
}

const Secret = ({ secret, onClose }: { secret: string; onClose: () => void }) => (
  <SecretDialog
    title="The signing secret"
    secret={secret}
    note="Verify each delivery with it, by the Standard Webhooks rules."
    onClose={onClose}
  />
)

function CreateDialog({
  projectId,
  onClose,
  onCreated,
}: {
  projectId: string
  onClose: () => void
  onCreated: (secret: string) => void
}) {
  const [url, setUrl] = useState('')
  const [types, setTypes] = useState('')
  const event_types = types.split(/[\s,]+/).filter(Boolean)
  const create = useAction({
    run: () => client.webhookCreate({ project_id: projectId }, { url: url.trim(), event_types }),
    done: () => 'Created the webhook',
    touches: ['webhookList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create webhook"
      action="Create webhook"
      isBusy={create.isPending}
      error={create.error}
      reason={
        /^https?:\/\/\S+$/.test(url.trim()) ? undefined : 'Give a URL that begins with https:// or http://'
      }
      onSubmit={() =>
        create.mutate(undefined, {
          onSuccess: (webhook) => {
            onClose()
            onCreated(webhook.secret)
          },
        })
      }
    >
      <TextField
        label="URL"
        type="url"
        value={url}
        onChange={setUrl}
        placeholder="https://hooks.example.com/slipway"
        autoFocus
      />
      <TextField
        label="Event types"
        value={types}
        onChange={setTypes}
        placeholder="all"
        hint="vm.running, operation.*; empty means all."
        isMono
      />
    </FormDialog>
  )
}

export function Deliveries() {
  const projectId = useProjectId()
  const { webhookId = '' } = useParams({ strict: false })
  const target = { project_id: projectId, webhook_id: webhookId }
  const webhooks = useQuery(readAll('webhookList', { project_id: projectId }))
  const deliveries = useQuery({
    ...read('webhookDeliveryList', { params: target, query: { limit: 100 } }),
    refetchInterval: 3_000,
  })
  const webhook = webhooks.data?.find(({ id }) => id === webhookId)
  const whyNot = useWhyNot('admin')
  const replay = useAction({
    run: (delivery: WebhookDelivery) => client.webhookDeliveryReplay({ ...target, delivery_id: delivery.id }),
    done: () => 'Queued for another delivery',
    touches: ['webhookDeliveryList'],
  })
  return (
    <Page
      title="Webhook"
      aside={webhook && <StateBadge state={webhook.state} />}
      actions={webhook && <WebhookActions webhook={webhook} />}
    >
      <SettingsTabs />
      <p className="mono break-all">{webhook?.url ?? '–'}</p>
      {deliveries.error && !deliveries.data ? (
        <ErrorState error={deliveries.error} onRetry={() => deliveries.refetch()} />
      ) : !deliveries.data ? (
        <Skeleton rows={4} />
      ) : deliveries.data.items.length === 0 ? (
        <p className="card px-4 py-3 text-ink-muted">
          Nothing has been delivered yet. “Send test” makes a first one.
        </p>
      ) : (
        <Table
          label="Deliveries"
          rows={deliveries.data.items}
          rowKey={(delivery) => delivery.id}
          columns={[
            {
              key: 'event',
              title: 'Event',
              width: 'minmax(160px, 1.4fr)',
              cell: (delivery) => delivery.event_type,
            },
            {
              key: 'state',
              title: 'State',
              width: '120px',
              cell: (delivery) => <StateBadge state={delivery.state} />,
            },
            {
              key: 'attempts',
              title: 'Attempts',
              width: '90px',
              align: 'right',
              cell: (delivery) => delivery.attempts,
            },
            {
              key: 'answer',
              title: 'Last answer',
              width: 'minmax(160px, 1.6fr)',
              cell: (delivery) => (
                <span title={delivery.error}>{delivery.response_status || delivery.error || '–'}</span>
              ),
            },
            {
              key: 'when',
              title: 'Created',
              width: '200px',
              align: 'right',
              cell: (delivery) => <When iso={delivery.created_at} />,
            },
            {
              key: 'actions',
              title: '',
              width: '100px',
              align: 'right',
              isBare: true,
              cell: (delivery) => (
                <Button
                  size="small"
                  reason={whyNot}
                  isBusy={replay.isPending && replay.variables?.id === delivery.id}
                  onClick={() => replay.mutate(delivery)}
                >
                  Replay
                </Button>
              ),
            },
          ]}
        />
      )}
    </Page>
  )
}

function WebhookActions({ webhook }: { webhook: Webhook }) {
  const projectId = useProjectId()
  const target = { project_id: projectId, webhook_id: webhook.id }
  const whyNot = useWhyNot('admin')
  const [isDeleting, setDeleting] = useState(false)
  const [secret, setSecret] = useState('')
  const isActive = webhook.state === 'active'
  const test = useAction({
    run: () => client.webhookTest(target),
    done: () => 'Queued a test event',
    touches: ['webhookDeliveryList'],
  })
  const toggle = useAction({
    run: () => client.webhookUpdate(target, { state: isActive ? 'paused' : 'active' }),
    done: () => (isActive ? 'Paused the webhook' : 'Resumed the webhook'),
    touches: ['webhookList'],
  })
  const rotate = useAction({
    run: () => client.webhookRotateSecret(target),
    done: () => 'Replaced the secret; both sign for a day',
  })
  const remove = useAction({
    run: () => client.webhookDelete(target),
    done: () => 'Deleted the webhook',
    touches: ['webhookList'],
    showsErrors: true,
  })
  return (
    <>
      <Button reason={whyNot} isBusy={test.isPending} onClick={() => test.mutate(undefined)}>
        Send test
      </Button>
      <Button reason={whyNot} isBusy={toggle.isPending} onClick={() => toggle.mutate(undefined)}>
        {isActive ? 'Pause' : 'Resume'}
      </Button>
      <Button
        reason={whyNot}
        isBusy={rotate.isPending}
        onClick={() => rotate.mutate(undefined, { onSuccess: (answer) => setSecret(answer.secret) })}
      >
        Rotate secret
      </Button>
      <Button kind="danger" reason={whyNot} onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {secret && <Secret secret={secret} onClose={() => setSecret('')} />}
      <Confirm
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        title="Delete the webhook"
        action="Delete webhook"
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate(undefined, { onSuccess: () => history.back() })}
      >
        <p>Nothing more is sent to {webhook.url}. Deliveries that wait are dropped.</p>
      </Confirm>
    </>
  )
}
