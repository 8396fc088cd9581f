// Reads the texts that an expression in the source code can have.
import ts from 'typescript'

/** Returns a short name in braces for a value that is known only at run time. */
function placeholder(node) {
  if (ts.isIdentifier(node)) return `{${node.text}}`
  if (ts.isPropertyAccessExpression(node)) return `{${node.name.text}}`
  if (ts.isNonNullExpression(node) || ts.isAwaitExpression(node)) return placeholder(node.expression)
  if (ts.isElementAccessExpression(node)) return placeholder(node.expression)
  if (ts.isCallExpression(node)) {
    const callee = node.expression.getText().split('.').at(-1)
    const [first, second] = node.arguments
    if (callee === 'plural' && second && ts.isStringLiteral(second)) return `{count} ${second.text}s`
    const isMethod = ts.isPropertyAccessExpression(node.expression)
    const value = first && !ts.isArrowFunction(first) && !ts.isStringLiteralLike(first) ? first : undefined
    if (value) return placeholder(value)
    return isMethod ? placeholder(node.expression.expression) : `{${callee}}`
  }
  return '{…}'
}

/** Returns the texts that an expression can have. A value that is known only at run time is in braces. */
export function textsOf(node) {
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return textsOf(node.expression)
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)]
  if (ts.isBinaryExpression(node)) {
    const { PlusToken, AmpersandAmpersandToken, BarBarToken, QuestionQuestionToken } = ts.SyntaxKind
    const operator = node.operatorToken.kind
    if (operator === PlusToken)
      return textsOf(node.left).flatMap((left) => textsOf(node.right).map((right) => left + right))
    if (operator === AmpersandAmpersandToken) return ['', ...textsOf(node.right)]
    if (operator === BarBarToken || operator === QuestionQuestionToken)
      return [...textsOf(node.left), ...textsOf(node.right)]
  }
  // The server's function `oneOf` lists the supported values, and may suggest one of them.
  if (ts.isCallExpression(node) && node.expression.getText() === 'oneOf')
    return [`must be one of ${placeholder(node.arguments[1])}{suggestion}`]
  if (ts.isTemplateExpression(node))
    return node.templateSpans.reduce(
      (texts, { expression, literal }) =>
        texts.flatMap((text) => partsOf(expression).map((part) => text + part + literal.text)),
      [node.head.text],
    )
  return [placeholder(node)]
}

/** For a choice between a few fixed texts, returns each of them. Any other expression is a value. */
export function partsOf(expression) {
  const texts = textsOf(expression)
  return texts.length > 4 ? ['{…}'] : texts
}
