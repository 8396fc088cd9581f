/**
 * The terminal writes its styles into style elements and style attributes, which the page's
 * Content-Security-Policy forbids. This function makes new elements apply the same styles through the CSSOM
 * (style sheet objects and `element.style`), which the policy allows. The terminal's option `documentOverride`
 * does not cover all of its parts. Returns a function that restores the original behavior.
 */
export function replaceInlineStyles(): () => void {
  const create = document.createElement
  const sheets: CSSStyleSheet[] = []
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    // The policy forbids even an empty style element. A template element is allowed, and also invisible.
    const element = create.call(document, tag === 'style' ? 'template' : tag, options)
    if (tag === 'style') sheets.push(sheetOf(element))
    else replaceStyleAttribute(element)
    return element
  }) as typeof document.createElement
  return () => {
    document.createElement = create
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet))
  }
}

function replaceStyleAttribute(element: HTMLElement): void {
  const setAttribute = element.setAttribute
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value
    else setAttribute.call(element, name, value)
  }
}

/** Applies the style element's text as a style sheet of the document until the element is removed. */
function sheetOf(element: HTMLElement): CSSStyleSheet {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set: (text: string) => sheet.replaceSync(text),
  })
  const remove = element.remove
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    remove.call(element)
  }
  return sheet
}
