# SPDX-License-Identifier: Apache-2.0
# Completion of crosstalk for bash. All words come from the program's own help, so a new option is known at once.

# Sets COMPREPLY to those of the words that the current one begins.
_crosstalk_words() {  # CURRENT [WORD...]
  local current=$1
  shift
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
}

# Sets COMPREPLY to paths. Readline looks by itself where that finds none: it understands quotes.
_crosstalk_paths() {  # CURRENT [-d: directories only]
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "${2:--f}" -- "$1")
  ((${#COMPREPLY[@]} > 0)) || compopt -o default 2>/dev/null
}

# Sets COMPREPLY to process ids, of which a comma may separate several. Threads of the kernel have no command line.
_crosstalk_pids() {  # CURRENT
  local before='' entry command pids=()
  [[ $1 == *,* ]] && before=${1%,*},
  for entry in /proc/[0-9]*; do
    command=
    { IFS= read -r -d '' command <"$entry/cmdline"; } 2>/dev/null
    [[ $command ]] && pids+=("$before${entry#/proc/}")
  done
  _crosstalk_words "$1" "${pids[@]}"
}

# Prints the words of which an option's value is one, by its description in the help:
#   "Colours: auto, always, never [auto]"  ->  auto always never
_crosstalk_choices() {  # DESCRIPTION
  local text=$1 word part
  local inner='^(.*)(\([^()]*\)|\[[^][]*\])(.*)$' choice='^ *([a-z][a-z0-9-]*) *$' parts=()
  while [[ $text =~ $inner ]]; do
    text="${BASH_REMATCH[1]}${BASH_REMATCH[3]}"
  done
  case $text in
    *': '*) text=${text#*: } ;;
    *' by '*,*) text=${text##* by } ;;
    *) return ;;
  esac
  IFS=, read -r -a parts <<<"$text"
  for part in "${parts[@]}"; do
    [[ $part =~ $choice ]] && printf '%s\n' "${BASH_REMATCH[1]}"
  done
}

# Prints the methods of estimation, which the help of `report` lists at its end.
_crosstalk_estimators() {  # HELP
  local line of_list='^  ([a-z_]+) +[a-z]'
  printf 'automatic\n'
  while IFS= read -r line; do
    [[ $line =~ $of_list ]] && printf '%s\n' "${BASH_REMATCH[1]}"
  done <<<"${1##*$'\n'Estimators}"
}

# Sets PLACEHOLDER and DESCRIPTION of an option, as the table of the help has them: "  -o,--output FILE   Profile to write".
# Fails if it takes no value.
_crosstalk_find() {  # HELP OPTION
  local line of_table='^  (-[^ ]+) ([A-Z][^ ]*) +(.*)$'
  while IFS= read -r line; do
    if [[ $line =~ $of_table && ",${BASH_REMATCH[1]}," == *",$2,"* ]]; then
      placeholder=${BASH_REMATCH[2]} description=${BASH_REMATCH[3]}
      return 0
    fi
  done <<<"$1"
  return 1
}

# Sets COMPREPLY to values of an option. Fails if it takes none.
_crosstalk_value() {  # HELP OPTION CURRENT
  local placeholder description
  _crosstalk_find "$1" "$2" || return
  case $placeholder in
    PID*) _crosstalk_pids "$3" ;;
    FILE) _crosstalk_paths "$3" ;;
    DIR) _crosstalk_paths "$3" -d ;;
    ?) ;;  # any number or name
    *)
      if [[ $2 == --estimator ]]; then
        _crosstalk_words "$3" $(_crosstalk_estimators "$1")
      else
        _crosstalk_words "$3" $(_crosstalk_choices "$description")
      fi
      ;;
  esac
}

# Prints the options in the table of a help.
_crosstalk_options() {  # HELP
  local line name names=() of_table='^  (-[^ ]+( --[a-z-]+)?)( |$)'
  while IFS= read -r line; do
    [[ $line =~ $of_table ]] || continue
    IFS=', ' read -r -a names <<<"${BASH_REMATCH[1]}"
    printf '%s\n' "${names[@]}"
  done <<<"$1"
}

# Prints what a help lists under a title: "Actions:", of `service`.
_crosstalk_listed() {  # HELP TITLE
  local line of_table='^  ([a-z]+)  *[A-Za-z[]'
  while IFS= read -r line; do
    [[ $line ]] || break
    [[ $line =~ $of_table ]] && printf '%s\n' "${BASH_REMATCH[1]}"
  done <<<"${1##*$'\n'"$2:"$'\n'}"
}

# True if the command that is to be recorded has been named: options behind it are its own.
_crosstalk_has_command() {  # HELP WORD...
  local help=$1 word skip='' ended='' placeholder description
  shift
  for word in "$@"; do
    if [[ $skip ]]; then
      skip=
    elif [[ $ended || $word != -* ]]; then
      return 0
    elif [[ $word == -- ]]; then
      ended=yes
    elif _crosstalk_find "$help" "$word"; then
      skip=yes
    fi
  done
  return 1
}

_crosstalk() {
  local program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} words=() word help
  COMPREPLY=()
  # Readline takes "--view=lines" for three words.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == '=' ]] || words+=("$word")
  done
  [[ $current == '=' ]] && current=
  case ${#words[@]}${words[0]-} in
    0 | 1help)
      help=$("$program" --help 2>/dev/null) || return
      _crosstalk_words "$current" help $(_crosstalk_listed "$help" Subcommands) $([[ ${words-} ]] || _crosstalk_options "$help")
      return
      ;;
  esac
  help=$("$program" "${words[0]}" --help 2>/dev/null) || return
  if [[ $help == *'] COMMAND'* ]] && _crosstalk_has_command "$help" "${words[@]:1}"; then
    _crosstalk_paths "$current"
  elif [[ ${words[-1]} == -?* ]] && _crosstalk_value "$help" "${words[-1]}" "$current"; then
    return
  elif [[ $current == -* && ${words[-1]} != -- ]]; then
    _crosstalk_words "$current" $(_crosstalk_options "$help")
  elif [[ $help == *'[ACTION '* ]]; then
    [[ ${words[1]-} && ${words[1]} != -* ]] || _crosstalk_words "$current" $(_crosstalk_listed "$help" Actions)
  elif [[ $help == *'] COMMAND'* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -- "$current"; compgen -d -- "$current")
  elif [[ $help =~ Usage:[^$'\n']*(FILE|' A B') ]]; then
    _crosstalk_paths "$current"
  fi
}

complete -F _crosstalk crosstalk
