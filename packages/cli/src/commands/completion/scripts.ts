/** Scripts that shells load. They offer the words from `slipway __complete`, or file names if there are none. */
export const completionScripts = {
  bash: `_slipway() {
  local IFS=$'\\n' words=() word last=0 cut i
  # Bash splits words at = and :, but slipway treats both as part of a word.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((i > 1)) && [[ $word == [=:]* || \${COMP_WORDS[i - 1]} == *[=:] ]]; then
      words[last]+=$word
    else
      words+=("$word")
      last=$((\${#words[@]} - 1))
    fi
  done
  cut=\${words[last]%"\${words[last]##*[=:]}"}
  COMPREPLY=($(slipway __complete -- "\${words[@]}" 2>/dev/null | cut -f1))
  for i in "\${!COMPREPLY[@]}"; do COMPREPLY[i]=$(printf '%q' "\${COMPREPLY[i]#"$cut"}"); done
  if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *[=:] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _slipway slipway
`,
  zsh: `#compdef slipway
_slipway() {
  local -a lines
  local line
  for line in "\${(@f)$(slipway __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && lines+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#lines} )); then _describe 'slipway' lines; else _files; fi
}
compdef _slipway slipway
`,
  fish: `function __slipway_complete
  set -l words (commandline -opc) (commandline -ct)
  slipway __complete -- $words[2..-1] 2>/dev/null
end
complete -c slipway -f -a '(__slipway_complete)'
complete -c slipway -n 'test -z "$(__slipway_complete)"' -F
`,
} as const

export type Shell = keyof typeof completionScripts
