import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SlotHolder, SlotShares } from '../../src/domain/slot-shares.ts'

/** Two organizations with two projects each. */
const holders: SlotHolder[] = ['a1', 'a2', 'b1', 'b2'].map((projectId) => ({
  projectId,
  organizationId: projectId[0]!,
}))
const slots = fc.integer({ min: 1, max: 64 })
/** Projects that request or release a slot. */
const steps = fc.array(fc.record({ holder: fc.constantFrom(...holders), isTaking: fc.boolean() }), {
  maxLength: 200,
})
const newcomer: SlotHolder = { projectId: 'c1', organizationId: 'c' }

/** Performs the allowed steps, and returns the slots that are held at the end. */
function perform(shares: SlotShares, asked: { holder: SlotHolder; isTaking: boolean }[]): SlotHolder[] {
  const held: SlotHolder[] = []
  for (const { holder, isTaking } of asked)
    if (isTaking && shares.canTake(holder)) {
      shares.take(holder)
      held.push(holder)
    } else if (!isTaking && held.includes(holder)) {
      shares.release(holder)
      held.splice(held.indexOf(holder), 1)
    }
  return held
}

test('the number of held slots never exceeds the total and matches the counts', () => {
  fc.assert(
    fc.property(slots, steps, (count, asked) => {
      const shares = new SlotShares(count)
      const held = perform(shares, asked)
      expect(shares.free).toBe(count - held.length)
      expect(shares.free).toBeGreaterThanOrEqual(0)
      const { ids, held: counts } = shares.projects
      for (const [index, id] of ids.entries())
        expect(counts[index]).toBe(held.filter(({ projectId }) => projectId === id).length)
    }),
  )
})

test('a project without slots gets one if one is free', () => {
  fc.assert(
    fc.property(slots, steps, (count, asked) => {
      const shares = new SlotShares(count)
      perform(shares, asked)
      expect(shares.canTake(newcomer)).toBe(shares.free > 0)
    }),
  )
})

test('any project can take each of the slots that are offered to all projects', () => {
  fc.assert(
    fc.property(slots, steps, fc.constantFrom(...holders, newcomer), (count, asked, taker) => {
      const shares = new SlotShares(count)
      perform(shares, asked)
      for (let left = shares.maxForAny; left > 0; left--) {
        expect(shares.canTake(taker)).toBe(true)
        shares.take(taker)
      }
    }),
  )
})

test('two organizations that take all the slots they can leave one for a third', () => {
  const shares = new SlotShares(64)
  const take = (holder: SlotHolder) => {
    let count = 0
    for (; shares.canTake(holder); count++) shares.take(holder)
    return count
  }
  // One project gets three quarters, and one organization seven eighths. The others get the same shares of the rest.
  expect(holders.map(take)).toEqual([48, 8, 6, 1])
  expect([shares.free, shares.canTake(newcomer)]).toEqual([1, true])
})

test('the projects and organizations that were served least recently come first', () => {
  const shares = new SlotShares(4)
  for (const holder of [holders[0]!, holders[2]!, holders[1]!]) {
    shares.take(holder)
    shares.release(holder)
  }
  expect(shares.projects.ids).toEqual(['a1', 'b1', 'a2'])
  expect(shares.organizations.ids).toEqual(['b', 'a'])
})
