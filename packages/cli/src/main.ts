import { exitCodes } from './errors/cli-error.ts'
import { runProgram } from './program.ts'

const { stdin, stdout, stderr, env } = process

// It is not an error if a reader such as `| head` stops reading.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.done)
  throw error
})

const io = {
  stdin,
  stdout,
  stderr,
  env,
  get cwd() {
    return process.cwd()
  },
}

// No top-level await: the single executable is a CommonJS script, which cannot have one.
void runProgram(process.argv.slice(2), io).then((code) => {
  process.exitCode = code
})
