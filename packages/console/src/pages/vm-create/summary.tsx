import { hoursPerMonth } from '@slipway/contract/vm-types'
import { isApiError, type VmCreate, type VmType } from '@slipway/sdk'
import type { ReactNode } from 'react'
import type { Limit } from '../../api/limits.ts'
import { useProjectId } from '../../api/me.ts'
import { quotaLabel, usd } from '../../lib/format.ts'
import { curlCommand, terraformResource } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { CommandLines } from '../../ui/commands.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { Sentence } from '../../ui/no-break.tsx'
import { UsageBar } from '../../ui/page.tsx'
import { groupCommand, vmCommand } from './commands.ts'
import type { GroupCreate } from './draft.ts'
import { type Problem, ProblemLink } from './problem.tsx'

interface SummaryProps {
  request: VmCreate
  /** The request for several VMs; null for one. */
  group: GroupCreate | null
  names: Parameters<typeof vmCommand>[1]
  type: VmType
  location: string
  count: number
  /** The price of one VM. Null if it is not loaded or not set. */
  usdPerHour: number | null
  problem: Problem | null
  isBusy: boolean
  error: Error | null
  gpuLimit: Limit | undefined
  vmLimit: Limit | undefined
  stock: number
  otherLocations: string[]
  /** True if no type is in stock in any location. */
  isAllOutOfStock: boolean
  onMove: (location: string) => void
  onCount: (count: number) => void
  /** The button that saves the form as a template. */
  save: ReactNode
  isTemplate: boolean
  /** True if the VMs are out of stock, so that the form waits for capacity instead. */
  isWaiting: boolean
  /** True if the queue holds the GPUs instead of creating the VMs. */
  isHeld: boolean
}

/** A summary that stays visible: cost, quota usage, the commands, and the create button. */
export function Summary(props: SummaryProps) {
  const { type, location, count, problem, gpuLimit, vmLimit, stock, error, save, isTemplate, isWaiting } =
    props
  const usdPerHour = props.usdPerHour === null ? null : count * props.usdPerHour
  const what = `${count === 1 ? '' : `${count} × `}${type.name} in ${location || '–'}`
  return (
    <>
      <aside aria-label="Summary" className="card sticky top-6 flex flex-col gap-4 p-4 max-lg:static">
        <div>
          <div className="figures text-2xl font-semibold">
            {usd(usdPerHour)}
            <span className="text-base font-normal text-ink-muted"> per hour</span>
          </div>
          <p className="figures text-ink-muted">
            {usd(usdPerHour === null ? null : usdPerHour * hoursPerMonth)} per month ({hoursPerMonth} hours)
          </p>
          <p className="mt-1 text-sm text-ink-muted">
            <Sentence
              text={`${what}. ${
                count === 1 ? 'Billed while it runs.' : 'Billed once all of them are running.'
              } Attached disks are billed separately.`}
            />
          </p>
        </div>
        {isTemplate ? (
          save
        ) : (
          <>
            {gpuLimit && (
              <section aria-label="Quota usage after creation" className="flex flex-col gap-2">
                <h2 className="text-sm text-ink-muted">Quota usage after creation</h2>
                <LimitBar limit={gpuLimit} more={count * type.gpuCount} />
                {vmLimit && <LimitBar limit={vmLimit} more={count} />}
              </section>
            )}
            {stock < count && !error && <OutOfStock {...props} />}
            {error && (
              <ErrorNote
                error={error}
                action={isOutOfStock(error) ? <Alternatives {...props} /> : undefined}
              />
            )}
            <SubmitButton {...props} className="w-full max-lg:hidden" />
            {(problem || isWaiting) && (
              <p className="-mt-2 text-sm text-ink-muted max-lg:hidden">
                {problem ? <ProblemLink problem={problem} /> : <Sentence text={queueText(props)} />}
              </p>
            )}
            {/* The commands that wait for capacity are next to the choices for it. */}
            {!isWaiting && <Commands {...props} />}
            {save}
          </>
        )}
      </aside>
      {/* On narrow screens, the summary is below the form, so this bar shows the price and the button. */}
      <div className="sticky bottom-[var(--toast-space,0px)] -mx-6 flex items-center justify-between gap-4 border-t border-line bg-surface px-6 py-3 max-md:-mx-4 max-md:px-4 lg:hidden">
        <div className="min-w-0">
          <p className="figures font-semibold">{usd(usdPerHour)}/h</p>
          <p className="line-clamp-2 text-sm text-ink-muted">
            {problem && !isTemplate ? (
              <ProblemLink problem={problem} />
            ) : (
              <Sentence text={isWaiting ? queueText(props) : what} />
            )}
          </p>
        </div>
        {!isTemplate && <SubmitButton {...props} className="" />}
      </div>
    </>
  )
}

const queueText = ({ count, isHeld }: SummaryProps) =>
  isHeld
    ? 'The GPUs are held for 15 minutes when they are available.'
    : count === 1
      ? 'The VM is created when its turn in the queue comes.'
      : 'The VMs are created when their turn in the queue comes.'

/** Creates the VMs or, if they are out of stock, puts the request in the queue. */
function SubmitButton({
  problem,
  isBusy,
  isWaiting,
  count,
  className,
}: SummaryProps & { className: string }) {
  const create = isBusy ? 'Creating…' : count === 1 ? 'Create VM' : `Create ${count} VMs`
  return (
    <Button type="submit" kind="primary" isBusy={isBusy} reason={problem?.text} className={className}>
      {isWaiting ? 'Wait for capacity' : create}
    </Button>
  )
}

function Commands({ request, group, names }: SummaryProps) {
  const path = `/v0.1/projects/${useProjectId()}`
  return group ? (
    <CommandLines
      cli={groupCommand(group, names)}
      curl={curlCommand('POST', `${path}/instance-groups`, group)}
      terraform={terraformResource('instance_group', group)}
    />
  ) : (
    <CommandLines
      cli={vmCommand(request, names)}
      curl={curlCommand('POST', `${path}/vms`, request)}
      terraform={terraformResource('vm', request)}
    />
  )
}

function LimitBar({ limit: { name, owner, used, max }, more }: { limit: Limit; more: number }) {
  // The owner must not be alone on the second line of a long label.
  return <UsageBar label={`${quotaLabel(name)}\u00a0(${owner})`} used={used + more} max={max} />
}

const isOutOfStock = (error: Error): boolean => isApiError(error) && error.code === 'out_of_stock'

function OutOfStock(props: SummaryProps) {
  const { type, location, stock } = props
  const text =
    stock === 0
      ? `${type.name} is out of stock in ${location}.`
      : `Only ${stock} × ${type.name} available in ${location}.`
  return (
    <div className="rounded-md border border-amber/50 bg-amber-soft p-3 text-sm">
      <p className="text-amber-text">
        <Sentence text={text} />
      </p>
      <div className="mt-2">
        <Alternatives {...props} />
      </div>
    </div>
  )
}

/** Offers the locations where all VMs fit, and the number of VMs that fit in the chosen location. */
function Alternatives(props: SummaryProps) {
  const { otherLocations, isAllOutOfStock, onMove, onCount, count, stock, error } = props
  const fits = (isApiError(error) ? error.fits : undefined) ?? stock
  const canBeFewer = count > 1 && fits > 0 && fits < count
  if (otherLocations.length === 0 && !canBeFewer)
    return (
      <p className="text-ink-muted">
        {isAllOutOfStock
          ? 'Every type is out of stock in every location. You can wait for capacity.'
          : count === 1
            ? 'This type is out of stock in every location. Wait for capacity, or choose a type that is in stock.'
            : `No location has room for ${count} VMs of this type. Wait for capacity, or choose fewer VMs or another type.`}
      </p>
    )
  return (
    <div className="flex flex-wrap gap-2">
      {otherLocations.map((name) => (
        <Button key={name} size="small" onClick={() => onMove(name)}>
          Use {name}
        </Button>
      ))}
      {canBeFewer && (
        <Button size="small" onClick={() => onCount(fits)}>
          Use {fits === 1 ? '1 VM' : `${fits} VMs`}
        </Button>
      )}
    </div>
  )
}
