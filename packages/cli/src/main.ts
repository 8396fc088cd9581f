import { exitCodes } from './errors/cli-error.ts'
import { reportFailure } from './output/report.ts'
import { runProgram } from './program.ts'

// A reader that has seen enough (`| head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.done)
  throw error
})

async function main(words: string[]): Promise<number> {
  try {
    return await runProgram(words)
  } catch (error) {
    return reportFailure(error, words)
  }
}

// No await up here: the single executable is a script of the old kind of modules, which cannot have one.
void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code
})
