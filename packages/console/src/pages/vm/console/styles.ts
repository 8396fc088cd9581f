/**
 * The terminal writes its styles into style elements and style attributes, which the page's security policy forbids. This
 * document creates elements that write the same styles through the style sheet interfaces, which the policy allows.
 */
export function documentWithoutInlineStyles(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === 'createElement') return createElement
      const member = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

function createElement(tag: string): HTMLElement {
  const element = document.createElement(tag)
  if (tag === 'style') return withSheet(element)
  const setAttribute = element.setAttribute.bind(element)
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value
    else setAttribute(name, value)
  }
  return element
}

/** A style element whose text becomes a sheet of the document, for as long as the element exists. */
function withSheet(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  Object.defineProperty(element, 'textContent', {
    get: () => '',
    set: (text: string) => sheet.replaceSync(text),
  })
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    Element.prototype.remove.call(element)
  }
  return element
}
