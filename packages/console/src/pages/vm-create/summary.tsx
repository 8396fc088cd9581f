import { hoursPerMonth } from '@slipway/contract/vm-types'
import { isApiError, type VmCreate, type VmType } from '@slipway/sdk'
import { useProjectId } from '../../api/me.ts'
import { quotaLabel, usd } from '../../lib/format.ts'
import { labelText } from '../../lib/labels.ts'
import type { Limit } from '../../lib/limits.ts'
import { curlCommand, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { CommandLines } from '../../ui/commands.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { Sentence } from '../../ui/no-break.tsx'
import { UsageBar } from '../../ui/page.tsx'
import { type Problem, ProblemLink } from './problem.tsx'

interface SummaryProps {
  request: VmCreate
  /** The names of the chosen saved keys, for the CLI command. */
  keyNames: string[]
  type: VmType
  /** Null if the price is not loaded or not set. */
  usdPerHour: number | null
  problem: Problem | null
  isBusy: boolean
  error: Error | null
  gpuLimit: Limit | undefined
  vmLimit: Limit | undefined
  stock: number | undefined
  otherLocations: string[]
  onMove: (location: string) => void
}

/** The summary that stays visible: cost, quota usage, the CLI and curl commands, and the create button. */
export function Summary(props: SummaryProps) {
  const {
    request,
    keyNames,
    type,
    usdPerHour,
    problem,
    isBusy,
    error,
    gpuLimit,
    vmLimit,
    stock,
    otherLocations,
    onMove,
  } = props
  const projectId = useProjectId()
  const { type: typeName, location } = request
  const moves = <OtherLocations places={otherLocations} onMove={onMove} />
  const button = (more: string) => (
    <Button type="submit" kind="primary" isBusy={isBusy} reason={problem?.words} className={more}>
      {isBusy ? 'Creating…' : 'Create VM'}
    </Button>
  )
  return (
    <>
      <aside aria-label="Summary" className="card sticky top-6 flex flex-col gap-4 p-4 max-lg:static">
        <div>
          <div className="figures text-2xl font-semibold">
            {usd(usdPerHour)}
            <span className="text-base font-normal text-ink-muted"> per hour</span>
          </div>
          <p className="figures text-ink-muted">
            {usd(usdPerHour === null ? null : usdPerHour * hoursPerMonth)} per month of {hoursPerMonth} hours
          </p>
          <p className="mt-1 text-sm text-ink-muted">
            <Sentence
              text={`${typeName} in ${location || '–'}. Billed while it runs. Attached disks are billed separately.`}
            />
          </p>
        </div>
        {gpuLimit && (
          <section aria-label="Quota usage after creation" className="flex flex-col gap-2">
            <h2 className="text-sm text-ink-muted">Quota usage after creation</h2>
            <LimitBar limit={gpuLimit} more={type.gpuCount} />
            {vmLimit && <LimitBar limit={vmLimit} more={1} />}
          </section>
        )}
        {stock === 0 && !error && (
          <div className="rounded-md border border-amber/50 bg-amber-soft p-3 text-sm">
            <p className="text-amber-text">
              <Sentence text={`${typeName} is out of stock in ${location}.`} />
            </p>
            <div className="mt-2">{moves}</div>
          </div>
        )}
        {error && <ErrorNote error={error} action={isOutOfStock(error) ? moves : undefined} />}
        {button('w-full max-lg:hidden')}
        {problem && stock !== 0 && (
          <p className="-mt-2 text-sm text-ink-muted max-lg:hidden">
            <ProblemLink problem={problem} />
          </p>
        )}
        <CommandLines
          cli={cliCommand(request, keyNames)}
          curl={curlCommand('POST', `/v0.1/projects/${projectId}/vms`, request)}
        />
      </aside>
      {/* On narrow screens the summary is below the form, so the price and the button stay at the bottom edge. */}
      <div className="sticky bottom-[var(--toast-space,0px)] -mx-6 flex items-center justify-between gap-4 border-t border-line bg-surface px-6 py-3 max-md:-mx-4 max-md:px-4 lg:hidden">
        <div className="min-w-0">
          <p className="figures font-semibold">{usd(usdPerHour)}/h</p>
          <p className="line-clamp-2 text-sm text-ink-muted">
            {problem ? <ProblemLink problem={problem} /> : <Sentence text={`${typeName} in ${location}`} />}
          </p>
        </div>
        {button('')}
      </div>
    </>
  )
}

function LimitBar({ limit: { name, of, used, max }, more }: { limit: Limit; more: number }) {
  const owner = of === 'project' ? 'project' : 'organization'
  return <UsageBar label={`${quotaLabel(name)} (${owner})`} used={used + more} max={max} />
}

const isOutOfStock = (error: Error): boolean => isApiError(error) && error.code === 'out_of_stock'

function OtherLocations({ places, onMove }: { places: string[]; onMove: (location: string) => void }) {
  if (places.length === 0)
    return <p className="text-ink-muted">This type is out of stock in every location. Choose another type.</p>
  return (
    <div className="flex flex-wrap gap-2">
      {places.map((place) => (
        <Button key={place} size="small" onClick={() => onMove(place)}>
          Use {place}
        </Button>
      ))}
    </div>
  )
}

function cliCommand(request: VmCreate, keyNames: string[]): string {
  const name = shellQuote(request.name || 'NAME')
  const parts = [
    `slipway vm create ${name}`,
    `--type ${request.type}`,
    `--location ${request.location}`,
    `--image ${request.image}`,
    ...keyNames.map((name) => `--ssh-key ${shellQuote(name)}`),
    ...(request.ssh_public_key || keyNames.length === 0 ? ['--ssh-key ~/.ssh/id_ed25519.pub'] : []),
    ...(request.startup_script ? ['--startup-script start.sh'] : []),
    ...(request.shutdown_script ? ['--shutdown-script stop.sh'] : []),
    ...(request.disks ?? []).map(
      ({ disk_id, mode }) => `--disk ${disk_id}${mode === 'read-only' ? ':read-only' : ''}`,
    ),
    ...Object.entries(request.labels ?? {}).map(([key, value]) => `--label ${labelText(key, value)}`),
    ...(request.subnet_id ? [`--subnet ${request.subnet_id}`] : []),
    ...(request.public_ip ? [`--public-ip ${request.public_ip}`] : []),
    ...(request.ttl_seconds ? [`--ttl ${request.ttl_seconds / 3600}h --on-expiry ${request.on_expiry}`] : []),
  ]
  const line = parts.join(' \\\n  ')
  return request.deletion_protection ? `${line} &&\nslipway vm protect ${name}` : line
}
