import { uuid } from '../domain/ids.ts'
import { sealSecret } from '../domain/secret-key.ts'
import type { Tx } from '../postgres/database.ts'
import type { Services } from '../services.ts'
import { insertMail } from '../store/events/mails.ts'

export interface Mail {
  to: string
  subject: string
  text: string
}

/** Queues an e-mail, which a worker sends after the commit. If mail is not configured, nothing is queued. */
export async function queueMail(
  { config, secretKey }: Pick<Services, 'config' | 'secretKey'>,
  tx: Tx,
  { to, subject, text }: Mail,
): Promise<void> {
  if (!config.mail || to === '') return
  await insertMail(tx, {
    id: uuid(),
    recipient: to,
    sealed: sealSecret(secretKey, JSON.stringify({ subject, text })),
  })
}
