import { escapeHtml } from '../escape-html.ts'

/** Markup that is already escaped and must not be escaped again. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | null | false | Piece[]

function render(piece: Piece): string {
  if (piece === null || piece === false) return ''
  if (Array.isArray(piece)) return piece.map(render).join('')
  if (piece instanceof Html) return piece.text
  return escapeHtml(piece)
}

/** A template tag that escapes everything but markup. */
export function html(strings: TemplateStringsArray, ...pieces: Piece[]): Html {
  return new Html(String.raw({ raw: strings }, ...pieces.map(render)))
}

/** Pages load their own style sheet, fonts and logo, run no script, and send forms to this service or the payment provider. */
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

/** Adds commas between thousands. */
export function money(text: string): string {
  const [whole = '0', cents = ''] = text.split('.')
  return `${whole.replace(/\B(?=(\d{3})+$)/g, ',')}${cents === '' ? '' : `.${cents}`}`
}
