import { ctyType } from '../values/codec.ts'
import type { Attribute } from '../values/types.ts'

const markdown = 1
const nestings = { single: 1, list: 2, set: 3 }

/** Converts a schema to Terraform's format. */
export function wireSchema(attributes: Attribute[], description: string): object {
  return {
    version: 0,
    block: { attributes: attributes.map(wireAttribute), description, description_kind: markdown },
  }
}

function wireAttribute({ name, type, description, use, isComputed, isSensitive }: Attribute): object {
  const shape =
    typeof type !== 'string' && 'nesting' in type
      ? { nested_type: { attributes: type.attributes.map(wireAttribute), nesting: nestings[type.nesting] } }
      : { type: Buffer.from(JSON.stringify(ctyType(type))) }
  return {
    name,
    description,
    description_kind: markdown,
    required: use === 'required',
    optional: use === 'optional',
    computed: isComputed,
    sensitive: isSensitive ?? false,
    ...shape,
  }
}
