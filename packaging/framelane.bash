# shellcheck shell=bash
# bash completion for framelane and framelane-bench. Commands, options and values are those that --help shows, so
# they need no list here. Where COMPREPLY stays empty, readline completes file names.

_framelane() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command=("${COMP_WORDS[0]/#\~/$HOME}") help option='' words=''
  COMPREPLY=()
  if [[ ${command[0]} != *-bench || ${COMP_WORDS[1]} = tune ]] && [ "$COMP_CWORD" -gt 1 ]; then
    command+=("${COMP_WORDS[1]}")
  fi
  help=$("${command[@]}" --help 2>/dev/null) || return

  # Lines such as "  -c,--config TEXT=/etc/x   Configuration file", "  --json   Print JSON", or
  # "  --slices N|auto:({auto}) OR (INT in [1 - 16])".
  if [[ $before =~ ^--?[a-z-]+$ ]]; then
    option=$(sed -nE "/^  (-[a-z], *)?$before( .*)?$/p" <<<"$help")
  fi
  if [[ $option =~ $before\ [^\ ] ]]; then
    if [ "$before" = --device ]; then
      words="auto cpu cuda"
    elif [[ $option =~ \{([^\}]*)\} ]]; then
      words=${BASH_REMATCH[1]//,/ }
    fi
  elif [[ $word = -* ]]; then
    words=$(sed -nE 's/^  (-[^ ,]+)(, *(--[^ ]+))?.*/\1 \3/p' <<<"$help")
  elif [[ $help =~ SUITE\ :\{([^\}]*)\} ]]; then
    words=${BASH_REMATCH[1]//,/ }
  else
    words=$(sed -nE '/^subcommands:/I,/^$/s/^  ([a-z]+) .*/\1/p' <<<"$help")
  fi
  [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _framelane framelane framelane-bench
