/** Markup that needs no escaping any more. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | null | false | Piece[]

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function render(piece: Piece): string {
  if (piece === null || piece === false) return ''
  if (Array.isArray(piece)) return piece.map(render).join('')
  if (piece instanceof Html) return piece.text
  return String(piece).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** Everything put into the template is escaped, unless it is markup itself. */
export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  return new Html(String.raw({ raw: strings }, ...pieces.map(render)))
}

/** Nothing but our own style sheet, typeface and mark is loaded, no script runs, and forms go to us, or on to the payment provider. */
export const pageSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; " +
  "form-action 'self' https://checkout.stripe.com https://billing.stripe.com"

export const stylePath = '/billing/assets/style.css'

export function page(title: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="stylesheet" href="${stylePath}">
</head>
<body>
${content}
</body>
</html>
`.text
}

export const pageHeader = (content: Html): Html =>
  html`<header><div><strong><img src="/favicon.svg" alt="" width="20" height="20">slipway</strong>${content}</div></header>`

/** `76.1` as `76.10`, thousands apart. */
export function money(text: string): string {
  const [whole = '0', cents = ''] = text.split('.')
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ',')}${cents === '' ? '' : `.${cents}`}`
}
