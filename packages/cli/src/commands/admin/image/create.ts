import { command } from '../../../core/command.ts'
import { printOne } from '../../../output/print.ts'
import { locationsOption } from './resource.ts'

interface ImageCreateInput {
  name: string
  locations: string[]
  description?: string
  tags?: string[]
  source?: Record<string, string | number>
}

export const adminImageCreate = command<ImageCreateInput>({
  name: 'create',
  summary: 'import an image',
  arguments: [{ syntax: '<name>', description: 'name and tag, for example ubuntu24.04-nvidia:latest' }],
  options: [
    locationsOption,
    { flags: '--description <text>', description: 'description of the image' },
    { flags: '--tags <tags>', description: 'tags, separated by commas', isList: true },
    {
      flags: '--source <json>',
      description:
        'JSON object with fields of the source; selects the image registered with `slipway-server images` that has these values',
      parse: JSON.parse,
    },
  ],
  examples: ['slipway admin image create debian13:latest --locations us-east1-a,eu-north1-a'],
  async run(cli, { name, locations, description, tags, source }) {
    const body = { name, locations, description, tags, source }
    await printOne(cli, await cli.operator.adminImageCreate(body))
  },
})
