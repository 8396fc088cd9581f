import { escapeHtml, inline } from './fields.ts'

export interface Webhooks {
  [type: string]: {
    post: {
      description: string
      requestBody: { content: Record<string, { example: { data: { data: unknown } } }> }
    }
  }
}

/** Every type of event that a webhook is sent, with an example of what it carries; the first is shown whole. */
export function webhookSection(webhooks: Webhooks, shownWhole = 'vm.running'): string {
  const exampleOf = (type: string) => webhooks[type]!.post.requestBody.content['application/json']!.example
  const json = (value: unknown) =>
    `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(value, null, 2))}</code></pre>`
  const rows = Object.entries(webhooks).map(
    ([type, { post }]) =>
      `<tr><th scope="row"><code>${escapeHtml(type).replace(/[._]/g, '$&<wbr>')}</code></th><td>${inline(post.description)}<details><summary>data</summary>${json(exampleOf(type).data.data)}</details></td></tr>`,
  )
  return `<section class="group" id="webhooks"><h2><a class="anchor" href="#webhooks">Webhooks</a></h2><p>Every event that a project’s webhooks can be sent. The guide above says how they are signed and tried again.</p></section>
<section class="endpoint" id="webhook-events"><div class="columns"><div class="facts"><table class="events"><tbody>${rows.join('')}</tbody></table></div>
<div class="samples"><figure><figcaption>What is posted · ${shownWhole}</figcaption>${json(exampleOf(shownWhole))}</figure></div></div></section>`
}
