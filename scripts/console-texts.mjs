// Finds the texts of the console: in JSX, in attributes and properties that contain text, and as sentences in
// the code.
import ts from 'typescript'
import { partsOf, textsOf } from './source-texts.mjs'

/** Attributes of components, and properties of objects, that contain text for users. */
const textNames =
  /^(about|action|advice|alt|aria-label|cell|description|done|empty|failed|footer|hint|ifLost|label|legend|message|note|past|placeholder|problem|reason|text|title|verb|warning|words)$/
const tones = ['good', 'busy', 'idle', 'held', 'warn', 'bad']
/** Sentences begin with a capital letter and have more than one word; commands and class names do not. */
const isSentence = (text) => /^["“{]?[A-Z][\w’'-]*[:.]? \S/.test(text)
const isTitle = (text) => /^[A-Z][\w ]+$/.test(text) && /[a-z]|^(CLI|SSH|ID|URL)$/.test(text)

/**
 * Returns the possible results of an expression: those of its branches and, for a function, of its `return`
 * statements.
 */
function resultsOf(node) {
  if (ts.isParenthesizedExpression(node)) return resultsOf(node.expression)
  if (ts.isConditionalExpression(node)) return [...resultsOf(node.whenTrue), ...resultsOf(node.whenFalse)]
  if (ts.isArrowFunction(node)) return ts.isBlock(node.body) ? returnsOf(node.body) : resultsOf(node.body)
  if (ts.isBinaryExpression(node)) {
    const operator = node.operatorToken.getText()
    if (operator === '&&') return resultsOf(node.right)
    return operator === '||' || operator === '??' ? [...resultsOf(node.left), ...resultsOf(node.right)] : []
  }
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) ? [node] : []
}

function returnsOf(node) {
  if (ts.isReturnStatement(node)) return node.expression ? resultsOf(node.expression) : []
  if (ts.isFunctionLike(node)) return []
  return node.getChildren().flatMap(returnsOf)
}

/** Returns the text of an element with everything inside it. Line breaks of the source count as spaces. */
function jsxTexts(node) {
  if (ts.isJsxText(node)) return [node.text.replace(/^\s*\n\s*|\s*\n\s*$/g, '').replace(/\s+/g, ' ')]
  if (ts.isJsxExpression(node)) return node.expression ? partsOf(node.expression) : ['']
  if (ts.isJsxElement(node) || ts.isJsxFragment(node))
    return node.children.reduce(
      (texts, child) => {
        const parts = jsxTexts(child)
        return texts.length * parts.length > 4
          ? texts.map((text) => `${text}{…}`)
          : texts.flatMap((text) => parts.map((part) => text + part))
      },
      [''],
    )
  return ['']
}

const hasText = (node) => node.children.some((child) => ts.isJsxText(child) && /[A-Za-z]{2}/.test(child.text))

/** Yields the texts of a source file, each with its kind. */
export function* consoleTexts(node, isInText = false) {
  const isText = (ts.isJsxElement(node) || ts.isJsxFragment(node)) && hasText(node)
  if (isText && !isInText) for (const text of jsxTexts(node)) yield { text, detail: 'text' }
  if (ts.isJsxAttribute(node)) {
    const value = node.initializer
    const expression = value && ts.isJsxExpression(value) ? value.expression : value
    const name = node.name.getText()
    if (!expression || name === 'className') return
    if (textNames.test(name)) yield* textsWithDetail(resultsOf(expression), name)
    else yield* consoleTexts(expression)
    return
  }
  if (ts.isPropertyAssignment(node) && textNames.test(node.name.getText()))
    yield* textsWithDetail(resultsOf(node.initializer), node.name.getText())
  else if (ts.isJsxExpression(node) && node.expression && !isInText)
    yield* textsWithDetail(resultsOf(node.expression), 'text')
  else if (ts.isArrayLiteralExpression(node)) {
    const [first, second] = node.elements
    if (first && second && ts.isStringLiteral(first) && ts.isStringLiteral(second))
      if (tones.includes(first.text)) yield { text: second.text, detail: 'state' }
    const titles = node.elements.filter((element) => ts.isStringLiteral(element) && isTitle(element.text))
    yield* textsWithDetail(titles, 'title')
  } else if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node))
    for (const text of textsOf(node)) if (isSentence(text)) yield { text, detail: 'text' }
  for (const child of node.getChildren()) yield* consoleTexts(child, isText || isInText)
}

function* textsWithDetail(nodes, detail) {
  const isConstant = (text) => /^[A-Z_]{4,}$/.test(text)
  for (const node of nodes) for (const text of textsOf(node)) if (!isConstant(text)) yield { text, detail }
}
