import { CommanderError } from 'commander'
import { exitCodes } from './core/failure.ts'
import { reportFailure } from './core/report.ts'
import { buildProgram, usageErrorOf } from './program.ts'

// A reader that has seen enough (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.done)
  throw error
})

// What commander says on stderr is told in our own form, but for the help of a command that lacks its verb.
let help = ''
const keepHelp = (text: string) => {
  help = text
}

async function main(words: string[]): Promise<number> {
  try {
    const program = await buildProgram(words)
    program.configureOutput({ writeErr: keepHelp })
    await program.parseAsync(words, { from: 'user' })
    return Number(process.exitCode ?? exitCodes.done)
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(error, words)
    if (error.exitCode === 0) return exitCodes.done
    if (error.code === 'commander.help') {
      process.stderr.write(help)
      return exitCodes.usage
    }
    return reportFailure(usageErrorOf(error), words)
  }
}

process.exitCode = await main(process.argv.slice(2))
