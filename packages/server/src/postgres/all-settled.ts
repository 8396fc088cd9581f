/**
 * Like `Promise.all`, but waits for all promises even if one fails, so that none of them sends a statement
 * after its transaction has ended. If several fail, throws the error of the first one in the list.
 */
export async function allSettledThenThrow<Works extends readonly unknown[]>(works: [...Works]) {
  const settled = await Promise.allSettled(works)
  for (const result of settled) if (result.status === 'rejected') throw result.reason
  return Promise.all(works)
}
