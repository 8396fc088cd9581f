import type { BillingDashboard } from '@slipway/contract'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { providerLink, removePaymentMethod, saveCard } from '../../api/billing-link.ts'
import { money, plural } from '../../lib/format.ts'
import { monthText } from '../../lib/months.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { TextField } from '../../ui/field.tsx'
import { StateBadge } from '../../ui/state.tsx'

interface SectionProps {
  token: string
  board: BillingDashboard
}

const gateTexts: Record<BillingDashboard['payment_method']['state'], string> = {
  active: '',
  never: 'Add a payment method to use the API.',
  removed:
    'Add a payment method to create or start anything that costs money. You can still view, stop and delete existing resources.',
  declined: 'The payment method was declined. Replace it to create or start anything that costs money.',
}

/**
 * Names the unpaid invoices, because the payment state does not say which charge failed. The service charges a new
 * card immediately; Stripe decides itself when it charges one.
 */
function declinedText({ provider, invoices }: BillingDashboard): string {
  const due = invoices.filter(({ state }) => state === 'issued')
  if (due.length === 0) return gateTexts.declined
  return [
    'The payment method was declined.',
    ...due.map(
      ({ period_start, usd }) =>
        `The invoice for ${monthText(period_start.slice(0, 7))}, ${money(usd)}, is not paid.`,
    ),
    provider === 'builtin'
      ? 'A new card is charged immediately.'
      : 'Replace the payment method, so that Stripe can charge it.',
    'After the payment, you can create and start resources that cost money again.',
  ].join(' ')
}

/** A project's billing link can add a payment method only while none is active. */
export function PaymentMethodSection({ token, board }: SectionProps) {
  const { payment_method: method, project_name } = board
  const gate = method.state === 'declined' ? declinedText(board) : gateTexts[method.state]
  const isHidden = project_name !== '' && method.state === 'active'
  return (
    <section aria-label="Payment method" className="card flex flex-col gap-4 p-4">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-lg font-semibold">Payment method</h2>
        <StateBadge state={method.state} />
      </div>
      {gate && <p className="rounded-md border border-amber/50 bg-amber-soft p-3 text-sm">{gate}</p>}
      {method.last4 && (
        <p className="flex flex-wrap justify-between gap-x-4">
          <span>
            {method.brand} ending in <span className="figures">{method.last4}</span>
          </span>
          <span className="figures text-ink-muted">
            expires at the end of {monthText(method.expires_month)}
          </span>
        </p>
      )}
      {isHidden ? (
        <p className="text-ink-muted">
          Only an owner of the organization can see and replace the payment method.
        </p>
      ) : (
        <MethodForm token={token} board={board} />
      )}
    </section>
  )
}

function MethodForm({ token, board }: SectionProps) {
  const { provider, payment_method: method, running } = board
  const cache = useQueryClient()
  const [number, setNumber] = useState('')
  const [expiry, setExpiry] = useState('')
  const refresh = () => cache.invalidateQueries({ queryKey: ['billing', token] })
  const save = useMutation<unknown, Error>({
    mutationFn: async () => {
      if (provider === 'builtin') return saveCard(token, { number, expiry })
      const { url } = await providerLink(token)
      location.assign(url)
    },
    onSuccess: () => {
      setNumber('')
      setExpiry('')
      return refresh()
    },
  })
  const remove = useMutation<unknown, Error>({
    mutationFn: () => removePaymentMethod(token),
    onSuccess: refresh,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    remove.reset()
    save.mutate()
  }
  const hasMethod = method.last4 !== ''
  const isBlocked = running.vms + running.disks > 0
  const error = save.error ?? remove.error
  const done = save.isSuccess ? 'Payment method saved.' : remove.isSuccess ? 'Payment method removed.' : ''
  return (
    <form onSubmit={submit} autoComplete="off" className="flex flex-col gap-4">
      {provider === 'builtin' && (
        <div className="grid gap-3 sm:grid-cols-[1fr_120px]">
          <TextField
            label="Test card number"
            inputMode="numeric"
            required
            maxLength={23}
            placeholder="4242 4242 4242 4242"
            value={number}
            onChange={setNumber}
          />
          <TextField
            label="Expiry"
            required
            maxLength={9}
            placeholder="MM/YY"
            value={expiry}
            onChange={setExpiry}
          />
        </div>
      )}
      {error && <ErrorNote error={error} />}
      {done && !error && (
        <p role="status" className="text-green-text">
          {done}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button type="submit" kind="primary" isBusy={save.isPending}>
          {hasMethod ? 'Replace' : 'Add'} {provider === 'builtin' ? 'card' : 'via Stripe'}
        </Button>
        {hasMethod && (
          <Button
            isBusy={remove.isPending}
            reason={isBlocked ? 'Stop all VMs and delete all disks first.' : undefined}
            onClick={() => {
              save.reset()
              remove.mutate()
            }}
          >
            Remove
          </Button>
        )}
        {hasMethod && isBlocked && (
          <span className="text-sm text-ink-muted">
            Cannot be removed: {plural(running.vms, 'VM')} not stopped, {plural(running.disks, 'disk')}.
          </span>
        )}
      </div>
      {board.test_cards.length > 0 && <TestCards cards={board.test_cards} isOpen={!hasMethod} />}
    </form>
  )
}

const TestCards = ({ cards, isOpen }: { cards: BillingDashboard['test_cards']; isOpen: boolean }) => (
  <details open={isOpen} className="text-sm">
    <summary className="cursor-pointer text-ink-muted">Test cards (no real payments)</summary>
    <ul className="mt-2 flex flex-col gap-1">
      {cards.map(({ number, meaning }) => (
        <li key={number} className="flex flex-wrap gap-x-4">
          <code className="mono">{number.replace(/(\d{4})(?=\d)/g, '$1 ')}</code>
          <span className="text-ink-muted">{meaning}</span>
        </li>
      ))}
    </ul>
    <p className="mt-2 text-ink-muted">
      Use any future expiry date. A card stops working after its expiry month. Other numbers are rejected and
      never stored.
    </p>
  </details>
)
