import { exitCodes } from './errors/cli-error.ts'
import { runProgram } from './program.ts'

const { stdin, stdout, stderr, env } = process

// A reader such as `| head` may close the pipe early; that is not an error.
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

// The single executable is a CommonJS script, which does not support top-level await.
void runProgram(process.argv.slice(2), io).then((code) => {
  process.exitCode = code
})
