import { setTimeout as delay } from 'node:timers/promises'
import { createTransport, type Transporter } from 'nodemailer'
import { openSecret } from '../domain/secret-key.ts'
import { PeriodicTasks } from '../runner/periodic.ts'
import type { Services } from '../services.ts'
import { claimMails, deleteMail, type MailRow } from '../store/events/mails.ts'
import { queueNotices } from './notices.ts'

const mailsAtOnce = 10
/** The pauses begin at a minute and double, so the attempts span about two hours. */
const maxAttempts = 8
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 20_000 }

/** Sends queued mail. Temporary failures are retried; permanent ones are not. */
export class MailDelivery {
  readonly #services: Services
  readonly #tasks: PeriodicTasks
  readonly #transport: Transporter | null

  constructor(services: Services) {
    this.#services = services
    this.#tasks = new PeriodicTasks((err) => services.log.warn({ err }, 'mail failed'))
    const { mail } = services.config
    this.#transport = mail && createTransport(mail.smtpUrl, { from: mail.from, ...timeouts })
  }

  start(): void {
    if (!this.#transport) return
    const { due } = this.#services
    this.#tasks.runOn(
      (call) => due.on({ kind: 'mails' }, call),
      () => this.send(),
    )
    this.#tasks.runOn(
      (call) => due.on({ kind: 'notices' }, call),
      () => queueNotices(this.#services),
    )
  }

  async stop(): Promise<void> {
    await Promise.race([this.#tasks.stop(), delay(3_000)])
    this.#transport?.close()
  }

  /** Queues and sends everything once. For tests. */
  async once(): Promise<void> {
    await queueNotices(this.#services)
    await this.send()
  }

  async send(): Promise<void> {
    for (const mail of await claimMails(this.#services.database, mailsAtOnce)) await this.#sendOne(mail)
  }

  async #sendOne({ id, recipient, sealed, attempts }: MailRow): Promise<void> {
    const { database, secretKey, log } = this.#services
    try {
      const { subject, text } = JSON.parse(openSecret(secretKey, sealed)) as { subject: string; text: string }
      await this.#transport!.sendMail({ to: recipient, subject, text })
      await deleteMail(database, id)
    } catch (err) {
      const isFinal = attempts >= maxAttempts || ((err as { responseCode?: number }).responseCode ?? 0) >= 500
      log.warn({ err, mail: id, isFinal }, 'mail not sent')
      if (isFinal) await deleteMail(database, id)
    }
  }
}
