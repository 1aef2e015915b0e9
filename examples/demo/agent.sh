#!/bin/sh
# The demo agent: reads a prompt, ticks off each line of it in TODO.md, and prints a JSON envelope like a real agent CLI.
# Usage: agent.sh [--output-format=json] [--model=NAME] [--pause=SECONDS] [--fail] -- PROMPT
set -eu

pause=0 fail=false
while [ $# -gt 0 ]; do
  case $1 in
    --) shift; break ;;
    --pause=*) pause=${1#--pause=} ;;
    --fail) fail=true ;;
    --output-format=json | --model=*) ;;
    *) echo "unknown argument" >&2; exit 64 ;;
  esac
  shift
done
[ $# -eq 1 ] || { echo "exactly one prompt, after --" >&2; exit 64; }

echo "reading the prompt" >&2
sleep "$pause"
printf '%s\n' "$1" | sed -e 's/^- \[ \] //' -e '/^$/d' -e 's/^/- [x] /' >>TODO.md
lines=$(wc -l <TODO.md)
echo "wrote TODO.md" >&2

# The result quotes nothing of the prompt, so it needs no escaping.
printf '{"result":"TODO.md has %d ticked lines","is_error":%s,"num_turns":1}\n' "$lines" "$fail"
