import { escapeHtml } from '../escape-html.ts'
import { inline } from './fields.ts'

export interface Webhooks {
  [type: string]: {
    post: {
      description: string
      requestBody: { content: Record<string, { example: { data: { data: unknown } } }> }
    }
  }
}

/**
 * Lists every event type that webhooks receive, with an example of its data, and shows one complete example.
 */
export function webhookSection(webhooks: Webhooks, shownWhole = 'vm.running'): string {
  const exampleOf = (type: string) => webhooks[type]!.post.requestBody.content['application/json']!.example
  const json = (value: unknown) =>
    `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(value, null, 2))}</code></pre>`
  const rows = Object.entries(webhooks).map(
    ([type, { post }]) =>
      `<tr><th scope="row"><code>${escapeHtml(type).replace(/[._]/g, '$&<wbr>')}</code></th><td>${inline(post.description)}<details><summary>data</summary>${json(exampleOf(type).data.data)}</details></td></tr>`,
  )
  return `<section class="group" id="webhooks"><h2><a class="anchor" href="#webhooks">Webhooks</a></h2><p>Every event that a project’s webhooks can receive. The guide above explains signatures and retries.</p></section>
<section class="endpoint" id="webhook-events"><div class="columns"><div class="facts"><table class="events"><tbody>${rows.join('')}</tbody></table></div>
<div class="samples"><figure><figcaption>Request body · ${shownWhole}</figcaption>${json(exampleOf(shownWhole))}</figure></div></div></section>`
}
