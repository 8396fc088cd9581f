/**
 * As `Promise.all`, but waits for all of them also when one fails: what goes on in several statements sends none of them
 * after its transaction has ended.
 */
export async function allEnded<Works extends readonly unknown[]>(works: [...Works]) {
  await Promise.allSettled(works)
  return Promise.all(works)
}
