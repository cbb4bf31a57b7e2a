# Completion of btfctl for bash.

_btfctl_objects() {
  btfctl list 2>/dev/null | awk 'NR > 1 { print $1; print $2 }'
}

_btfctl_links() {
  btfctl list --json 2>/dev/null | grep -o '"links":\[[^]]*\]' | grep -o '"id":[0-9]*' | cut -d: -f2
}

_btfctl() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= i
  local globals="--socket --json --verbose --help"
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --socket) ((i++)) ;;
      -*) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  if [[ $previous == --socket ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  local words
  case $command in
    "") words="load unload attach update detach read list show stats events map prog check relocate btf kernel monitor --version $globals" ;;
    load)
      words="--name --label --attach --attach-all --enable --disable --set --max-entries --map --program --kconfig --reuse --kernel-btf --log-level --deadline
        --dry-run --stay --exec $globals"
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    check)
      words="--kernel --strict $globals"
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    relocate)
      words="--kernel --output --in-place $globals"
      [[ $word == -* ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    btf)
      words="minimize --kernel --output $globals"
      [[ $word == -* || ${COMP_WORDS[COMP_CWORD - 1]} == btf ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$word"); return; }
      ;;
    stats) words="$(_btfctl_objects) --interval $globals" ;;
    prog) words="$(_btfctl_objects) --code $globals" ;;
    events) words="$(_btfctl_objects) --type --count $globals" ;;
    map) words="dump lookup update delete $(_btfctl_objects) --new --existing $globals" ;;
    show) words="$(_btfctl_objects) --relocations $globals" ;;
    unload) words="$(_btfctl_objects) $globals" ;;
    attach) words="$(_btfctl_objects) --deadline $globals" ;;
    detach | read) words="$(_btfctl_links) $globals" ;;
    update) words="$(_btfctl_links) $(_btfctl_objects) $globals" ;;
    list) words="--label --name $globals" ;;
    *) words=$globals ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o filenames -F _btfctl btfctl
